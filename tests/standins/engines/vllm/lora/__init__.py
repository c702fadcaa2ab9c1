"""LoRA."""
