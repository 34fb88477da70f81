"""Presets whose layers have experts."""

from __future__ import annotations

from core.model.preset_rows import (
    CONFIGS,
    LITGPT,
    Dimensions,
    Experts,
    Preset,
    decoder,
    experts,
    hub,
    row,
)
from core.model.transformer import Transformer

MAVERICK = (
    "the dimensions of Scout, with 128 experts (huggingface.co/blog/llama4-release) in every "
    "second layer (huggingface/transformers 5.23.0, its configuration class)",
    "2026-11-21",
)


def moe_models() -> list[Preset]:
    """The table of presets with experts."""
    return [*_mixtral_and_qwen(), *_deepseek(), *_llama4(), *_others()]


def _mixtral_and_qwen() -> list[Preset]:
    def qwen3(size: str, numbers: Dimensions, routed: Experts, published: float) -> Preset:
        return row(
            f"qwen3-{size.lower()}", f"Qwen3 {size}", CONFIGS,
            Transformer(**numbers, **routed, qk_norm=True),
            max_seq_len=40_960, published_params=published, aliases=(f"Qwen/Qwen3-{size}",),
        )  # fmt: skip

    return [
        row(
            "mixtral-8x7b", "Mixtral 8x7B", LITGPT,
            Transformer(**decoder(32, 4096, 14336, 32, 8, 128, 32000), **experts(8, 2, 14336)),
            max_seq_len=32_768, published_params=46_702_792_704,
            aliases=("mistralai/Mixtral-8x7B-v0.1", "mistralai/Mixtral-8x7B-Instruct-v0.1"),
        ),
        row(
            "mixtral-8x22b", "Mixtral 8x22B", LITGPT,
            Transformer(**decoder(56, 6144, 16384, 48, 8, 128, 32768), **experts(8, 2, 16384)),
            max_seq_len=65_536, published_params=141e9,
            aliases=("mistralai/Mixtral-8x22B-v0.1", "mistralai/Mixtral-8x22B-Instruct-v0.1"),
        ),
        qwen3(
            "30B-A3B", decoder(48, 2048, 6144, 32, 4, 128, 151936), experts(128, 8, 768),
            30_532_122_624,
        ),
        qwen3(
            "235B-A22B", decoder(94, 4096, 12288, 64, 4, 128, 151936), experts(128, 8, 1536),
            235_093_634_560,
        ),
    ]  # fmt: skip


def _deepseek() -> list[Preset]:
    """Latent attention with keys of 512, heads of 128 + 64."""

    def latent(
        numbers: Dimensions, routed: Experts, *, shared: int, dense: int, query_rank: int
    ) -> Transformer:
        return Transformer(
            **numbers,
            **routed,
            num_shared_experts=shared,
            num_dense_layers=dense,
            q_lora_rank=query_rank,
            kv_lora_rank=512,
            qk_nope_head_dim=128,
            qk_rope_head_dim=64,
            v_head_dim=128,
        )

    return [
        row(
            "deepseek-v2", "DeepSeek V2", hub("FILM6912/DeepSeek-V3 (inference/configs)"),
            latent(
                decoder(60, 5120, 12288, 128, 128, 192, 102400), experts(160, 6, 1536),
                shared=2, dense=1, query_rank=1536,
            ),
            max_seq_len=163_840, published_params=236e9,
            aliases=("deepseek-ai/DeepSeek-V2", "deepseek-ai/DeepSeek-V2-Chat",
                     "deepseek-ai/DeepSeek-V2.5"),
        ),
        row(
            "deepseek-v2-lite", "DeepSeek V2 Lite",
            hub("deepseek-ai/DeepSeek-V3 (inference/configs)"),
            latent(
                decoder(27, 2048, 10944, 16, 16, 192, 102400), experts(64, 6, 1408),
                shared=2, dense=1, query_rank=0,
            ),
            max_seq_len=163_840, published_params=15_706_484_224,
            aliases=("deepseek-ai/DeepSeek-V2-Lite", "deepseek-ai/DeepSeek-V2-Lite-Chat"),
        ),
        row(
            "deepseek-v3", "DeepSeek V3", CONFIGS,
            latent(
                decoder(61, 7168, 18432, 128, 128, 192, 129280), experts(256, 8, 2048),
                shared=1, dense=3, query_rank=1536,
            ),
            max_seq_len=163_840, published_params=671e9,
            aliases=("deepseek-ai/DeepSeek-V3", "deepseek-ai/DeepSeek-V3-Base",
                     "deepseek-ai/DeepSeek-R1"),
            note="Without the multi-token prediction layer (11.5B more).",
        ),
        row(
            "kimi-k2", "Kimi K2", CONFIGS,
            latent(
                decoder(61, 7168, 18432, 64, 64, 192, 163840), experts(384, 8, 2048),
                shared=1, dense=1, query_rank=1536,
            ),
            max_seq_len=131_072, published_params=1_026_408_235_864,
            aliases=("moonshotai/Kimi-K2-Base", "moonshotai/Kimi-K2-Instruct"),
        ),
    ]  # fmt: skip


def _llama4() -> list[Preset]:
    def llama4(
        id: str, name: str, routed: Experts, published: float, *, dense: int, max_seq_len: int
    ) -> Preset:
        return row(
            id, name, CONFIGS if dense == 0 else MAVERICK,
            Transformer(
                **decoder(48, 5120, 16384, 40, 8, 128, 202048),
                **routed,
                num_shared_experts=1,
                num_dense_layers=dense,
                sliding_window=8192,
                num_window_layers=36,
            ),
            max_seq_len=max_seq_len, published_params=published,
            aliases=(f"meta-llama/{name.replace(' ', '-')}",
                     f"meta-llama/{name.replace(' ', '-')}-Instruct"),
            note="The language model, without the vision tower. Attention inside chunks of 8,192 "
            "tokens is counted as a window of that size.",
        )  # fmt: skip

    return [
        llama4(
            "llama4-scout", "Llama 4 Scout 17B 16E", experts(16, 1, 8192), 108_641_793_536,
            dense=0, max_seq_len=10_485_760,
        ),
        llama4(
            "llama4-maverick", "Llama 4 Maverick 17B 128E", experts(128, 1, 8192), 400e9,
            dense=24, max_seq_len=1_048_576,
        ),
    ]  # fmt: skip


def _others() -> list[Preset]:
    def gpt_oss(size: str, layers: int, number: int, published: float) -> Preset:
        return row(
            f"gpt-oss-{size}", f"gpt-oss {size}", CONFIGS,
            Transformer(
                **decoder(layers, 2880, 2880, 64, 8, 64, 201088),
                **experts(number, 4, 2880),
                qkv_bias=True,
                linear_bias=True,
                sliding_window=128,
                num_window_layers=layers // 2,
            ),
            max_seq_len=131_072, published_params=published, aliases=(f"openai/gpt-oss-{size}",),
        )  # fmt: skip

    return [
        gpt_oss("20b", 24, 32, 20_914_757_184),
        gpt_oss("120b", 36, 128, 116_829_156_672),
        row(
            "grok-1", "Grok-1", hub("hpcai-tech/grok-1"),
            Transformer(
                **decoder(64, 6144, 32768, 48, 8, 128, 131072),
                **experts(8, 2, 32768),
                tied_embeddings=True,
                norms_per_layer=4,
            ),
            max_seq_len=8192, published_params=314e9,
            aliases=("xai-org/grok-1", "hpcai-tech/grok-1"),
        ),
        row(
            "glm-4.5-air", "GLM-4.5-Air", CONFIGS,
            Transformer(
                **decoder(46, 4096, 10944, 96, 8, 128, 151552),
                **experts(128, 8, 1408),
                num_shared_experts=1,
                num_dense_layers=1,
                qkv_bias=True,
            ),
            max_seq_len=131_072, published_params=106e9, aliases=("zai-org/GLM-4.5-Air",),
            note="Without the multi-token prediction layer (3.6B more).",
        ),
    ]  # fmt: skip
