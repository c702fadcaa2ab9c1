"""Train the assistant's language model and its tokenizer on the questions and answers of `corpus.py`.

A byte-level BPE tokenizer and a small Llama, written in Hugging Face form; the tokenizer also goes to the two
stages next to the model.

    python train_llm.py                      # some ten minutes of one core
    python train_llm.py --steps 2 --out models-of-mine
"""

import argparse
import json
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from corpus import Pair, make_pairs
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from torch.nn import functional
from transformers import LlamaConfig, LlamaForCausalLM

HERE = Path(__file__).parent
PAD, USER, ASSISTANT, END = "<|pad|>", "<|user|>", "<|assistant|>", "<|end|>"
SPECIAL_TOKENS = [PAD, USER, ASSISTANT, END]
PAD_ID, USER_ID, ASSISTANT_ID, END_ID = range(4)
CHAT_TEMPLATE = (
    "{% for m in messages %}{% if m.role == 'assistant' %}<|assistant|>{{ m.content }}<|end|>"
    "{% else %}<|user|>{{ m.content }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
MAX_POSITIONS = 512
IGNORED = -100


def train_tokenizer(pairs: list[Pair], vocabulary: int) -> Tokenizer:
    """Train byte-level BPE: any text encodes, and ids decode piece by piece without knowing what came before."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=SPECIAL_TOKENS,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    texts = [text for pair in pairs for text in (*pair.questions[:4], pair.answer, pair.answer)]
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


@dataclass(frozen=True, slots=True)
class Example:
    """Token ids of the ways to ask, and of the one answer."""

    questions: tuple[list[int], ...]
    answer: list[int]


def encode(tokenizer: Tokenizer, pairs: list[Pair]) -> list[Example]:
    """Return ids for training: `<|user|>question<|assistant|>` and `answer<|end|>`."""
    examples = []
    for pair in pairs:
        questions = tokenizer.encode_batch(list(pair.questions))
        prompts = tuple([USER_ID, *question.ids, ASSISTANT_ID] for question in questions)
        examples.append(Example(prompts, [*tokenizer.encode(pair.answer).ids, END_ID]))
    return examples


def batches(examples: list[Example], size: int, dice: random.Random) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Yield (ids, labels) without end, each INT64 [size, length], of examples of like length.

    Only answers are labels; each question is asked in one of its ways at random.
    """
    while True:
        order = sorted(examples, key=lambda example: len(example.answer) + dice.random() * 12)
        chunks = [order[i : i + size] for i in range(0, len(order), size)]
        dice.shuffle(chunks)
        for chunk in chunks:
            yield pad([(dice.choice(example.questions), example.answer) for example in chunk])


def pad(rows: list[tuple[list[int], list[int]]]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return rows of (question, answer) as rectangles; questions and padding carry no label."""
    width = max(len(question) + len(answer) for question, answer in rows)
    ids = torch.full((len(rows), width), PAD_ID)
    labels = torch.full((len(rows), width), IGNORED)
    for row, (question, answer) in enumerate(rows):
        end = len(question) + len(answer)
        ids[row, :end] = torch.tensor(question + answer)
        labels[row, len(question) : end] = torch.tensor(answer)
    return ids, labels


def make_model(vocabulary: int) -> LlamaForCausalLM:
    """Return a model of four layers, grouped-query attention, tied embeddings: about 1.9 million parameters."""
    config = LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=192,
        intermediate_size=512,
        num_hidden_layers=4,
        num_attention_heads=6,
        num_key_value_heads=2,
        max_position_embeddings=MAX_POSITIONS,
        tie_word_embeddings=True,
        bos_token_id=USER_ID,
        eos_token_id=END_ID,
        pad_token_id=PAD_ID,
        attn_implementation="sdpa",
    )
    return LlamaForCausalLM(config)


def learning_rate(step: int, steps: int, peak: float) -> float:
    """Return the rate of a step: a short warm-up, then a cosine down to a fiftieth of the peak."""
    warm = min(1.0, (step + 1) / max(1, min(100, steps // 10)))
    return peak * warm * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * step / steps)))


def train(model: LlamaForCausalLM, examples: list[Example], steps: int, size: int, peak: float, seed: int) -> float:
    """Teach `model` the answers; returns the mean loss per answer token over the last tenth of the steps."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=peak, betas=(0.9, 0.95), weight_decay=0.1)
    stream = batches(examples, size, random.Random(seed))
    model.train()
    losses: list[float] = []
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, steps, peak)
        ids, labels = next(stream)
        hidden = model.model(ids).last_hidden_state[:, :-1]
        targets = labels[:, 1:]
        labelled = targets != IGNORED
        loss = functional.cross_entropy(model.lm_head(hidden[labelled]), targets[labelled])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]  # torch has no types for it
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
        if (step + 1) % 250 == 0:
            print(f"step {step + 1}: loss {sum(losses[-250:]) / 250:.3f}", flush=True)
    tail = losses[-max(1, steps // 10) :]
    return sum(tail) / len(tail)


def save(model: LlamaForCausalLM, tokenizer: Tokenizer, out: Path) -> None:
    """Write `out/llm` in Hugging Face form (bfloat16), and the tokenizer to the stages that need it."""
    llm = out / "llm"
    for folder in (llm, out / "tokenize", out / "detokenize"):
        folder.mkdir(parents=True, exist_ok=True)
    for path in (
        llm / "tokenizer.json",
        out / "tokenize" / "llm_tokenizer.json",
        out / "detokenize" / "tokenizer.json",
    ):
        tokenizer.save(str(path), pretty=False)
    weights = {name: value.to(torch.bfloat16).contiguous() for name, value in model.state_dict().items()}
    weights.pop("lm_head.weight")  # tied to the input embedding
    save_file(weights, llm / "model.safetensors", metadata={"format": "pt"})
    (llm / "model.safetensors").chmod(0o644)
    model.config.architectures = ["LlamaForCausalLM"]
    model.config.dtype = "float32"  # what the weights are computed in, unless the server is told otherwise
    model.config.save_pretrained(llm)
    model.generation_config.do_sample = False
    model.generation_config.save_pretrained(llm)
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": MAX_POSITIONS,
        "bos_token": USER,
        "eos_token": END,
        "pad_token": PAD,
        "additional_special_tokens": [USER, ASSISTANT],
        "chat_template": CHAT_TEMPLATE,
        "clean_up_tokenization_spaces": False,
    }
    (llm / "tokenizer_config.json").write_text(json.dumps(settings, indent=2) + "\n")


def answer(model: LlamaForCausalLM, tokenizer: Tokenizer, question: str, tokens: int = 48) -> str:
    """Return the model's answer, decoded greedily."""
    ids = torch.tensor([[USER_ID, *tokenizer.encode(question).ids, ASSISTANT_ID]])
    model.eval()
    out = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=tokens, do_sample=False)
    return tokenizer.decode(out[0, ids.shape[1] :].tolist(), skip_special_tokens=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=HERE / "models", help="where llm/, tokenize/ and detokenize/ stand")
    parser.add_argument("--steps", type=int, default=4000)
    parser.add_argument("--batch", type=int, default=16, help="examples per step")
    parser.add_argument("--vocabulary", type=int, default=1536)
    parser.add_argument("--learning-rate", type=float, default=3e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    pairs = make_pairs()
    tokenizer = train_tokenizer(pairs, args.vocabulary)
    examples = encode(tokenizer, pairs)
    model = make_model(tokenizer.get_vocab_size())
    tokens = sum(len(example.answer) for example in examples)
    print(f"{len(pairs)} answers of {tokens} tokens, {model.num_parameters()} parameters", flush=True)
    loss = train(model, examples, args.steps, args.batch, args.learning_rate, args.seed)
    save(model, tokenizer, args.out)
    print(f"final loss {loss:.3f} per answer token")
    for question in ("What is the with statement?", "what does len do", "What is the json module?", "Hello"):
        print(f"Q: {question}\nA: {answer(model, tokenizer, question)}")


if __name__ == "__main__":
    main()
