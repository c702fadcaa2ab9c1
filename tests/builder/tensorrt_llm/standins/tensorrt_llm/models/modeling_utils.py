from dataclasses import dataclass


@dataclass
class QuantConfig:
    quant_algo: object = None
    kv_cache_quant_algo: object = None
    group_size: int = 128
    smoothquant_val: float = 0.5
    clamp_val: object = None
    use_meta_recipe: bool = False
    has_zero_point: bool = False
    pre_quant_scale: bool = False
    exclude_modules: object = None
    mamba_ssm_cache_dtype: object = None
