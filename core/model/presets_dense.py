"""Presets whose layers are attention and one dense MLP."""

from __future__ import annotations

from core.model.preset_rows import (
    BROWN,
    CONFIGS,
    LITGPT,
    NEMO,
    Dimensions,
    Preset,
    decoder,
    hub,
    row,
)
from core.model.transformer import Transformer


def dense_models() -> list[Preset]:
    """The table of dense presets."""
    return [*_llama(), *_qwen(), *_gemma(), *_olmo(), *_mistral_and_phi(), *_without_gate(),
            *_small()]  # fmt: skip


def _llama() -> list[Preset]:
    llama_3 = (
        "meta-llama/Llama-3.1-{0}",
        "meta-llama/Llama-3.1-{0}-Instruct",
        "meta-llama/Meta-Llama-3.1-{0}",
        "meta-llama/Meta-Llama-3.1-{0}-Instruct",
    )
    llama_2 = (
        "meta-llama/Llama-2-{0}-hf",
        "meta-llama/Llama-2-{0}",
        "meta-llama/Llama-2-{0}-chat-hf",
    )
    small = "meta-llama/Llama-3.2-{0}", "meta-llama/Llama-3.2-{0}-Instruct"

    def of(patterns: tuple[str, ...], size: str) -> tuple[str, ...]:
        return tuple(p.format(size) for p in patterns)

    return [
        row(
            "llama3.1-8b", "Llama 3.1 8B", LITGPT,
            Transformer(**decoder(32, 4096, 14336, 32, 8, 128, 128256)),
            max_seq_len=131_072, published_params=8_030_261_248, aliases=of(llama_3, "8B"),
        ),
        row(
            "llama3.1-70b", "Llama 3.1 70B", LITGPT,
            Transformer(**decoder(80, 8192, 28672, 64, 8, 128, 128256)),
            max_seq_len=131_072, published_params=70_553_706_496,
            aliases=(*of(llama_3, "70B"), "meta-llama/Llama-3.3-70B-Instruct"),
        ),
        row(
            "llama3.1-405b", "Llama 3.1 405B", LITGPT,
            Transformer(**decoder(126, 16384, 53248, 128, 8, 128, 128256)),
            max_seq_len=131_072, published_params=405_853_388_800, aliases=of(llama_3, "405B"),
        ),
        row(
            "llama3.2-1b", "Llama 3.2 1B", LITGPT,
            Transformer(**decoder(16, 2048, 8192, 32, 8, 64, 128256), tied_embeddings=True),
            max_seq_len=131_072, published_params=1_235_814_400, aliases=of(small, "1B"),
        ),
        row(
            "llama3.2-3b", "Llama 3.2 3B", CONFIGS,
            Transformer(**decoder(28, 3072, 8192, 24, 8, 128, 128256), tied_embeddings=True),
            max_seq_len=131_072, published_params=3_212_749_824, aliases=of(small, "3B"),
        ),
        row(
            "llama2-7b", "Llama 2 7B", CONFIGS,
            Transformer(**decoder(32, 4096, 11008, 32, 32, 128, 32000)),
            max_seq_len=4096, published_params=6_738_415_616, aliases=of(llama_2, "7b"),
        ),
        row(
            "llama2-13b", "Llama 2 13B", CONFIGS,
            Transformer(**decoder(40, 5120, 13824, 40, 40, 128, 32000)),
            max_seq_len=4096, published_params=13_015_864_320, aliases=of(llama_2, "13b"),
        ),
        row(
            "llama2-70b", "Llama 2 70B", LITGPT,
            Transformer(**decoder(80, 8192, 28672, 64, 8, 128, 32000)),
            max_seq_len=4096, published_params=68_976_648_192, aliases=of(llama_2, "70b"),
        ),
    ]  # fmt: skip


def _qwen() -> list[Preset]:
    def qwen2(size: str, numbers: Dimensions, published: float, *, tied: bool = False) -> Preset:
        return row(
            f"qwen2.5-{size.lower()}", f"Qwen2.5 {size}", LITGPT,
            Transformer(**numbers, qkv_bias=True, tied_embeddings=tied),
            max_seq_len=32_768 if tied else 131_072, published_params=published,
            aliases=(f"Qwen/Qwen2.5-{size}", f"Qwen/Qwen2.5-{size}-Instruct"),
        )  # fmt: skip

    def qwen3(
        size: str,
        numbers: Dimensions,
        published: float,
        *,
        read_at: tuple[str, str] = LITGPT,
        tied: bool = False,
    ) -> Preset:
        return row(
            f"qwen3-{size.lower()}", f"Qwen3 {size}", read_at,
            Transformer(**numbers, qk_norm=True, tied_embeddings=tied),
            max_seq_len=40_960, published_params=published,
            aliases=(f"Qwen/Qwen3-{size}", f"Qwen/Qwen3-{size}-Base"),
        )  # fmt: skip

    return [
        qwen2("0.5B", decoder(24, 896, 4864, 14, 2, 64, 151936), 494_032_768, tied=True),
        qwen2("1.5B", decoder(28, 1536, 8960, 12, 2, 128, 151936), 1_543_714_304, tied=True),
        qwen2("3B", decoder(36, 2048, 11008, 16, 2, 128, 151936), 3_085_938_688, tied=True),
        qwen2("7B", decoder(28, 3584, 18944, 28, 4, 128, 152064), 7_615_616_512),
        qwen2("14B", decoder(48, 5120, 13824, 40, 8, 128, 152064), 14_770_033_664),
        qwen2("32B", decoder(64, 5120, 27648, 40, 8, 128, 152064), 32_763_876_352),
        qwen2("72B", decoder(80, 8192, 29568, 64, 8, 128, 152064), 72_706_203_648),
        qwen3("0.6B", decoder(28, 1024, 3072, 16, 8, 128, 151936), 596_049_920, tied=True),
        qwen3("1.7B", decoder(28, 2048, 6144, 16, 8, 128, 151936), 1_720_574_976, tied=True),
        qwen3("4B", decoder(36, 2560, 9728, 32, 8, 128, 151936), 4_022_468_096, tied=True),
        qwen3(
            "8B", decoder(36, 4096, 12288, 32, 8, 128, 151936), 8_190_735_360, read_at=CONFIGS
        ),
        qwen3("14B", decoder(40, 5120, 17408, 40, 8, 128, 151936), 14_768_307_200),
        qwen3(
            "32B", decoder(64, 5120, 25600, 64, 8, 128, 151936), 32_762_123_264, read_at=CONFIGS
        ),
    ]  # fmt: skip


def _gemma() -> list[Preset]:
    def gemma2(size: str, numbers: Dimensions, published: float) -> Preset:
        return row(
            f"gemma2-{size}", f"Gemma 2 {size.upper()}", CONFIGS,
            Transformer(
                **numbers,
                tied_embeddings=True,
                norms_per_layer=4,
                sliding_window=4096,
                num_window_layers=numbers["num_layers"] // 2,
            ),
            max_seq_len=8192, published_params=published,
            aliases=(f"google/gemma-2-{size}", f"google/gemma-2-{size}-it"),
        )  # fmt: skip

    def gemma3(size: str, numbers: Dimensions, published: float) -> Preset:
        layers = numbers["num_layers"]
        return row(
            f"gemma3-{size}", f"Gemma 3 {size.upper()}", CONFIGS,
            Transformer(
                **numbers,
                tied_embeddings=True,
                norms_per_layer=4,
                qk_norm=True,
                sliding_window=1024,
                num_window_layers=layers - layers // 6,
            ),
            max_seq_len=131_072, published_params=published,
            aliases=(f"google/gemma-3-{size}-pt", f"google/gemma-3-{size}-it"),
            note="The language model, without the vision tower (0.4B).",
        )  # fmt: skip

    return [
        gemma2("9b", decoder(42, 3584, 14336, 16, 8, 256, 256000), 9_241_705_984),
        gemma2("27b", decoder(46, 4608, 36864, 32, 16, 128, 256000), 27_227_128_320),
        gemma3("4b", decoder(34, 2560, 10240, 8, 4, 256, 262208), 3_880_263_168),
        gemma3("12b", decoder(48, 3840, 15360, 16, 8, 256, 262208), 11_766_034_176),
        gemma3("27b", decoder(62, 5376, 21504, 32, 16, 128, 262208), 27_009_346_304),
    ]


def _olmo() -> list[Preset]:
    def olmo2(size: str, numbers: Dimensions, published: float) -> Preset:
        return row(
            f"olmo2-{size}", f"OLMo 2 {size.upper()}", LITGPT,
            Transformer(**numbers, qk_norm=True),
            max_seq_len=4096, published_params=published,
            aliases=(f"allenai/OLMo-2-1124-{size}", f"allenai/OLMo-2-1124-{size}-Instruct"),
        )  # fmt: skip

    return [
        olmo2("7b", decoder(32, 4096, 11008, 32, 32, 128, 100352), 7_298_617_344),
        olmo2("13b", decoder(40, 5120, 13824, 40, 40, 128, 100352), 13_716_198_400),
    ]


def _mistral_and_phi() -> list[Preset]:
    return [
        row(
            "mistral-7b", "Mistral 7B v0.1", CONFIGS,
            Transformer(
                **decoder(32, 4096, 14336, 32, 8, 128, 32000),
                sliding_window=4096,
                num_window_layers=32,
            ),
            max_seq_len=32_768, published_params=7_241_732_096,
            aliases=("mistralai/Mistral-7B-v0.1", "mistralai/Mistral-7B-Instruct-v0.1"),
            note="v0.1: every layer looks back 4,096 tokens. v0.2 and v0.3 have no window, and "
            "v0.3 a vocabulary of 32,768: give their config.json.",
        ),
        row(
            "mistral-nemo-12b", "Mistral Nemo 12B", CONFIGS,
            Transformer(**decoder(40, 5120, 14336, 32, 8, 128, 131072)),
            max_seq_len=131_072, published_params=12_247_782_400,
            aliases=("mistralai/Mistral-Nemo-Base-2407", "mistralai/Mistral-Nemo-Instruct-2407"),
        ),
        row(
            "mistral-small-3.2-24b", "Mistral Small 3.2 24B", CONFIGS,
            Transformer(**decoder(40, 5120, 32768, 32, 8, 128, 131072)),
            max_seq_len=131_072, published_params=23_572_403_200,
            aliases=("mistralai/Mistral-Small-3.2-24B-Instruct-2506",),
            note="The language model, without the vision tower (0.4B).",
        ),
        row(
            "phi-4", "Phi-4", CONFIGS,
            Transformer(**decoder(40, 5120, 17920, 40, 10, 128, 100352)),
            max_seq_len=16_384, published_params=14_659_507_200, aliases=("microsoft/phi-4",),
        ),
        row(
            "command-r", "Command R 35B", hub("CohereForAI/c4ai-command-r-v01"),
            Transformer(
                **decoder(40, 8192, 22528, 64, 64, 128, 256000),
                tied_embeddings=True,
                norms_per_layer=1,
            ),
            max_seq_len=131_072, published_params=35e9,
            aliases=("CohereForAI/c4ai-command-r-v01", "CohereLabs/c4ai-command-r-v01"),
        ),
    ]  # fmt: skip


def _without_gate() -> list[Preset]:
    def falcon(
        size: str, numbers: Dimensions, published: float, *, norms: int = 2, tied: bool = True
    ) -> Preset:
        return row(
            f"falcon-{size.lower()}", f"Falcon {size}", LITGPT,
            Transformer(
                **numbers,
                tied_embeddings=tied,
                gated_mlp=False,
                norm_bias=True,
                norms_per_layer=norms,
            ),
            max_seq_len=2048, published_params=published,
            aliases=(f"tiiuae/falcon-{size}", f"tiiuae/falcon-{size}-instruct"),
        )  # fmt: skip

    return [
        row(
            "gpt3-175b", "GPT-3 175B", BROWN,
            Transformer(
                **decoder(96, 12288, 49152, 96, 96, 128, 50257),
                num_positions=2048,
                tied_embeddings=True,
                gated_mlp=False,
                qkv_bias=True,
                linear_bias=True,
                norm_bias=True,
            ),
            max_seq_len=2048, published_params=175e9,
            aliases=("gpt3", "gpt-3", "gpt-3-175b"),
            note="The paper prints 175.0B and no vocabulary; 50,257 tokens and tied embeddings "
            "are GPT-2's, whose tokenizer and architecture it says it uses. Its sparse "
            "attention layers are counted as dense.",
        ),
        row(
            "bloom-176b", "BLOOM 176B", hub("sambanovasystems/BLOOMChat-176B-v1"),
            Transformer(
                **decoder(70, 14336, 57344, 112, 112, 128, 250880),
                tied_embeddings=True,
                alibi=True,
                gated_mlp=False,
                qkv_bias=True,
                linear_bias=True,
                norm_bias=True,
            ),
            max_seq_len=2048, published_params=176_247_271_424,
            aliases=("bigscience/bloom", "bloom"),
        ),
        falcon("7b", decoder(32, 4544, 18176, 71, 1, 64, 65024), 6_921_720_704, norms=1),
        falcon("40b", decoder(60, 8192, 32768, 128, 8, 64, 65024), 41_303_293_952),
        falcon("180B", decoder(80, 14848, 59392, 232, 8, 64, 65024), 179_522_565_120, tied=False),
        row(
            "nemotron4-15b", "Nemotron-4 15B", NEMO,
            Transformer(
                **decoder(32, 6144, 24576, 48, 8, 128, 256000), gated_mlp=False, norm_bias=True
            ),
            max_seq_len=4096, published_params=15.7e9,
            aliases=("nvidia/Nemotron-4-15B", "nemotron-4-15b"),
        ),
        row(
            "nemotron4-340b", "Nemotron-4 340B", hub("mgoin/Nemotron-4-340B-Base-hf"),
            Transformer(
                **decoder(96, 18432, 73728, 96, 8, 192, 256000), gated_mlp=False, norm_bias=True
            ),
            max_seq_len=4096, published_params=341e9,
            aliases=("nvidia/Nemotron-4-340B-Base", "nvidia/Nemotron-4-340B-Instruct",
                     "nemotron-4-340b"),
        ),
    ]  # fmt: skip


def _small() -> list[Preset]:
    return [
        row(
            "tinyllama-1.1b", "TinyLlama 1.1B", LITGPT,
            Transformer(**decoder(22, 2048, 5632, 32, 4, 64, 32000)),
            max_seq_len=2048, published_params=1.1e9,
            aliases=("TinyLlama/TinyLlama-1.1B-intermediate-step-1431k-3T",
                     "TinyLlama/TinyLlama-1.1B-Chat-v1.0"),
        ),
        row(
            "smollm2-1.7b", "SmolLM2 1.7B", LITGPT,
            Transformer(**decoder(24, 2048, 8192, 32, 32, 64, 49152), tied_embeddings=True),
            max_seq_len=8192, published_params=1.7e9,
            aliases=("HuggingFaceTB/SmolLM2-1.7B", "HuggingFaceTB/SmolLM2-1.7B-Instruct"),
        ),
    ]  # fmt: skip
