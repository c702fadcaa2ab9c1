import json
from pathlib import Path
from typing import Any

from standin import called, changed


def export_hf_checkpoint(
    model: Any, dtype: Any = None, export_dir: str | Path = "/tmp", save_modelopt_state: bool = False
) -> None:
    called("export_hf_checkpoint")
    model.save_pretrained(export_dir)
    config = {"producer": {"name": "modelopt", "version": "0.37.0"}, "quantization": model.quantized}
    Path(export_dir, "hf_quant_config.json").write_text(json.dumps(changed("checkpoint", config)))
