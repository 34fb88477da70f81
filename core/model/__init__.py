"""Transformers: dimensions, parameters, FLOPs, named models, Hugging Face configs.

adapter_passes  passes over memory that low-rank adapters make around their own small
                matmuls
adapters        low-rank adapters: their size, and the bytes of a frozen, quantised base
dimensions      dimensions of a decoder, and how many layers of each type it has
hf_config       read a parsed Hugging Face config.json as a Transformer
hf_families     dense families of Hugging Face configurations: which keys mean which
                dimensions
hf_gpt          older families of Hugging Face configurations: LayerNorm with bias, MLP
                without a gate
hf_hybrid       families of Hugging Face configurations with state-space layers
hf_linear       families of Hugging Face configurations with linear-attention layers
hf_moe          families of Hugging Face configurations whose layers have experts
hf_reader       strict reader of the keys of a config.json from outside
preset_rows     rows of the tables of named models
presets         named models, found by name
presets_dense   presets whose layers are attention and one dense MLP
presets_hybrid  presets with state-space or linear-attention layers
presets_moe     presets whose layers have experts
state_space     state-space layers and linear attention (delta rule): parameters, FLOPs
                and bytes
transformer     parameters and FLOPs of a model, by part, from its dimensions
"""
