"""Transformers: dimensions, parameters, FLOPs, named models, Hugging Face configs.

adapters        low-rank adapters: their size, and the bytes of a frozen, quantised base
dimensions      the dimensions of a decoder, and how many of its layers are of which type
hf_config       a Hugging Face config.json, already parsed, read as a Transformer
hf_families     the dense families of Hugging Face configurations: which keys mean which
                dimensions
hf_gpt          the older families of Hugging Face configurations: LayerNorm with bias, an
                MLP without a gate
hf_hybrid       the families of Hugging Face configurations with state-space layers
hf_linear       the families of Hugging Face configurations with linear-attention layers
hf_moe          the families of Hugging Face configurations whose layers have experts
hf_reader       strict reading of a parsed, foreign config.json: one key at a time, and the
                common part
preset_rows     what a row of the tables of named models is made of
presets         named models, and how a name finds one
presets_dense   named models whose layers are attention and one dense MLP
presets_hybrid  named models with state-space or linear-attention layers
presets_moe     named models whose layers have experts
state_space     mixers without a score matrix: state-space layers and linear attention by
                the delta rule
transformer     what follows from the dimensions of a model: parameters and FLOPs, by part
"""
