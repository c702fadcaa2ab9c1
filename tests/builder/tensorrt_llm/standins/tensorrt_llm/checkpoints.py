"""Checkpoints in TensorRT-LLM's form."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from standin import called, changed, typed

from .models.modeling_utils import QuantConfig

MAPPED = (
    "world_size",
    "gpus_per_node",
    "cp_size",
    "tp_size",
    "pp_size",
    "moe_tp_size",
    "moe_cluster_size",
    "moe_ep_size",
    "attn_tp_size",
    "attn_cp_size",
)


class Mapping:
    def __init__(
        self,
        world_size: int = 1,
        rank: int = 0,
        gpus_per_node: int = 8,
        *,
        cp_size: int = 1,
        tp_size: int = 1,
        pp_size: int = 1,
        moe_tp_size: int = -1,
        moe_ep_size: int = -1,
    ) -> None:
        if world_size != tp_size * pp_size * cp_size:
            raise ValueError(
                f"world_size must equal to tp_size * pp_size * cp_size, but got {world_size} != {tp_size} * {pp_size}"
            )
        assert 0 <= rank < world_size, "Rank should be an integer between 0 and world_size"
        if moe_tp_size == -1 and moe_ep_size == -1:
            moe_tp_size, moe_ep_size = tp_size, 1
        elif moe_tp_size == -1:
            moe_tp_size = tp_size // moe_ep_size
        elif moe_ep_size == -1:
            moe_ep_size = tp_size // moe_tp_size
        if moe_tp_size * moe_ep_size != tp_size:
            raise ValueError("tp_size must equal to moe_tp_size * moe_ep_size")
        self.rank = rank
        self.world_size, self.gpus_per_node, self.cp_size = world_size, gpus_per_node, cp_size
        self.tp_size, self.pp_size = tp_size, pp_size
        self.moe_tp_size, self.moe_ep_size, self.moe_cluster_size = moe_tp_size, moe_ep_size, 1
        self.attn_tp_size, self.attn_cp_size = tp_size, 1

    def to_dict(self) -> dict[str, Any]:
        flags = {"cp_config": {}, "enable_attention_dp": False, "enable_lm_head_tp_in_adp": False}
        return {name: getattr(self, name) for name in MAPPED} | flags


def config(model: Path, dtype: str, mapping: dict[str, Any], quantization: dict[str, Any]) -> dict[str, Any]:
    """Return a checkpoint's config.json."""
    source = json.loads((model / "config.json").read_text())
    if dtype == "auto":
        dtype = {"float32": "float16"}.get(source.get("dtype") or source.get("torch_dtype"), "bfloat16")
    return {
        "architecture": source["architectures"][0],
        "dtype": dtype,
        "logits_dtype": "float32",
        "vocab_size": source["vocab_size"],
        "hidden_size": source["hidden_size"],
        "num_hidden_layers": source["num_hidden_layers"],
        "num_attention_heads": source["num_attention_heads"],
        "num_key_value_heads": source["num_key_value_heads"],
        "max_position_embeddings": source["max_position_embeddings"],
        "mapping": mapping,
        "quantization": quantization,
        "runtime_defaults": None,
    }


@dataclass
class Model:
    config: dict[str, Any]
    rank: int

    def save_checkpoint(self, output_dir: str, save_config: bool = True) -> None:
        typed("output_dir", output_dir, str)
        folder = Path(output_dir)
        assert folder.is_dir(), "the folder of a checkpoint must be there"
        (folder / f"rank{self.rank}.safetensors").write_bytes(b"weights")
        if save_config:
            (folder / "config.json").write_text(json.dumps(changed("checkpoint", self.config)))


class AutoModelForCausalLM:
    @staticmethod
    def from_hugging_face(
        hf_model_or_dir: str,
        dtype: str = "auto",
        mapping: Mapping | None = None,
        quant_config: QuantConfig | None = None,
        *,
        load_by_shard: bool = False,
        load_model_on_cpu: bool = False,
        use_parallel_embedding: bool = False,
        embedding_sharding_dim: int = 0,
    ) -> Model:
        typed("hf_model_or_dir", hf_model_or_dir, str)
        typed("dtype", dtype, "auto", "float16", "bfloat16", "float32")
        typed("mapping", mapping, Mapping)
        typed("quant_config", quant_config, QuantConfig, None)
        for name, value in (("load_model_on_cpu", load_model_on_cpu), ("parallel", use_parallel_embedding)):
            typed(name, value, bool)
        typed("embedding_sharding_dim", embedding_sharding_dim, 0, 1)
        model = Path(hf_model_or_dir)
        assert (model / "config.json").is_file()
        assert mapping is not None
        called(
            "from_hugging_face",
            model=model.name,
            files=sorted(path.name for path in model.iterdir()),
            code="auto_map" in (model / "config.json").read_text(),
            dtype=dtype,
            rank=mapping.rank,
            mapping=mapping.to_dict(),
            quant_algo=None if quant_config is None else quant_config.quant_algo,
            use_parallel_embedding=use_parallel_embedding,
            embedding_sharding_dim=embedding_sharding_dim,
            load_model_on_cpu=load_model_on_cpu,
        )
        checkpoint = config(model, dtype, mapping.to_dict(), asdict(quant_config or QuantConfig()))
        return Model(checkpoint, mapping.rank)
