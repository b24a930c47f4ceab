"""Two Llama 3 8B blocks, forward and backward, as models are commonly written before anybody tunes them."""

from __future__ import annotations

import torch
from torch import Tensor, nn

# Shape letters, as in x_BTD: B batch (1), T tokens, D model dim, N query heads, K key/value heads,
# H dim of one head, C = H / 2 complex numbers of one head, F hidden dim of the feed-forward.

kind = "layer"

# One case is one shape: keywords of build() and inputs(). What a case leaves out is as in Llama 3 8B.
cases = {"4k": {"tokens": 4096}, "16k": {"tokens": 16384}}
cpu_cases = {
    "tiny": {"tokens": 64, "dim": 128, "heads": 4, "kv_heads": 2, "ffn": 448},
    "small": {"tokens": 256, "dim": 256, "heads": 8, "kv_heads": 2, "ffn": 896},
}

blocks = ["Block"]  # the classes that tree `block` compiles, and that activation checkpointing wraps
regions = ["apply_rope", "RMSNorm.forward", "swiglu"]  # what tree `regions` compiles, one by one


class RMSNorm(nn.Module):
    """Scales each token to unit mean square, then each channel by a weight; computed in float32."""

    def __init__(self, dim: int, *, eps: float = 1e-5, device: torch.device, dtype: torch.dtype) -> None:
        super().__init__()
        self.eps = eps
        # Near one, not exactly one: code that forgets the weight would then pass every check.
        self.weight = nn.Parameter(1.0 + 0.1 * torch.randn(dim, device=device, dtype=dtype))

    def forward(self, x_BTD: Tensor) -> Tensor:
        x_wide_BTD = x_BTD.float()
        rstd_BT1 = torch.rsqrt(x_wide_BTD.pow(2).mean(-1, keepdim=True) + self.eps)
        return (x_wide_BTD * rstd_BT1).type_as(x_BTD) * self.weight


def rope_frequencies(head_dim: int, *, tokens: int, theta: float = 500_000.0, device: torch.device) -> Tensor:
    """The rotation of every position and channel pair, as complex64 numbers of length one: freqs_TC."""
    inverse_C = theta ** (-torch.arange(0, head_dim, 2, device=device, dtype=torch.float32) / head_dim)
    angle_TC = torch.outer(torch.arange(tokens, device=device, dtype=torch.float32), inverse_C)
    return torch.polar(torch.ones_like(angle_TC), angle_TC)


def apply_rope(q_BTNH: Tensor, k_BTKH: Tensor, freqs_TC: Tensor) -> tuple[Tensor, Tensor]:
    """Rotates neighbouring channels (2i, 2i + 1) of queries and keys by their position, in float32."""
    freqs_T1C = freqs_TC.unsqueeze(1)
    q_BTNC = torch.view_as_complex(q_BTNH.float().unflatten(-1, (-1, 2)))
    k_BTKC = torch.view_as_complex(k_BTKH.float().unflatten(-1, (-1, 2)))
    q_out_BTNH = torch.view_as_real(q_BTNC * freqs_T1C).flatten(-2)
    k_out_BTKH = torch.view_as_real(k_BTKC * freqs_T1C).flatten(-2)
    return q_out_BTNH.type_as(q_BTNH), k_out_BTKH.type_as(k_BTKH)


class Attention(nn.Module):
    """Causal attention in which several query heads share one key/value head."""

    def __init__(
        self, dim: int, *, heads: int, kv_heads: int, device: torch.device, dtype: torch.dtype
    ) -> None:
        super().__init__()
        self.head_dim = dim // heads
        kv_dim = kv_heads * self.head_dim
        self.wq = nn.Linear(dim, dim, bias=False, device=device, dtype=dtype)
        self.wk = nn.Linear(dim, kv_dim, bias=False, device=device, dtype=dtype)
        self.wv = nn.Linear(dim, kv_dim, bias=False, device=device, dtype=dtype)
        self.wo = nn.Linear(dim, dim, bias=False, device=device, dtype=dtype)

    def forward(self, x_BTD: Tensor, freqs_TC: Tensor) -> Tensor:
        q_BTNH = self.wq(x_BTD).unflatten(-1, (-1, self.head_dim))
        k_BTKH = self.wk(x_BTD).unflatten(-1, (-1, self.head_dim))
        v_BTKH = self.wv(x_BTD).unflatten(-1, (-1, self.head_dim))
        q_BTNH, k_BTKH = apply_rope(q_BTNH, k_BTKH, freqs_TC)
        out_BNTH = nn.functional.scaled_dot_product_attention(
            q_BTNH.transpose(1, 2),
            k_BTKH.transpose(1, 2),
            v_BTKH.transpose(1, 2),
            is_causal=True,
            enable_gqa=True,
        )
        return self.wo(out_BNTH.transpose(1, 2).flatten(-2))


def swiglu(gate_BTF: Tensor, up_BTF: Tensor) -> Tensor:
    """The gate of the feed-forward: silu(gate) * up."""
    return nn.functional.silu(gate_BTF) * up_BTF


class FeedForward(nn.Module):
    """SwiGLU feed-forward: w2(silu(w1 x) * w3 x)."""

    def __init__(self, dim: int, *, ffn: int, device: torch.device, dtype: torch.dtype) -> None:
        super().__init__()
        self.w1 = nn.Linear(dim, ffn, bias=False, device=device, dtype=dtype)
        self.w2 = nn.Linear(ffn, dim, bias=False, device=device, dtype=dtype)
        self.w3 = nn.Linear(dim, ffn, bias=False, device=device, dtype=dtype)

    def forward(self, x_BTD: Tensor) -> Tensor:
        return self.w2(swiglu(self.w1(x_BTD), self.w3(x_BTD)))


class Block(nn.Module):
    """One transformer block: x + attention(norm(x)), then h + feed_forward(norm(h))."""

    def __init__(
        self, dim: int, *, heads: int, kv_heads: int, ffn: int, device: torch.device, dtype: torch.dtype
    ) -> None:
        super().__init__()
        self.attention_norm = RMSNorm(dim, device=device, dtype=dtype)
        self.attention = Attention(dim, heads=heads, kv_heads=kv_heads, device=device, dtype=dtype)
        self.ffn_norm = RMSNorm(dim, device=device, dtype=dtype)
        self.feed_forward = FeedForward(dim, ffn=ffn, device=device, dtype=dtype)

    def forward(self, x_BTD: Tensor, freqs_TC: Tensor) -> Tensor:
        h_BTD = x_BTD + self.attention(self.attention_norm(x_BTD), freqs_TC)
        return h_BTD + self.feed_forward(self.ffn_norm(h_BTD))


class Blocks(nn.Module):
    """Blocks in a row that share one table of rotations."""

    def __init__(self, blocks: list[Block], freqs_TC: Tensor) -> None:
        super().__init__()
        self.layers = nn.ModuleList(blocks)
        self.register_buffer("freqs_cis", freqs_TC, persistent=False)

    def forward(self, x_BTD: Tensor) -> Tensor:
        for block in self.layers:
            x_BTD = block(x_BTD, self.freqs_cis)
        return x_BTD


def build(
    *,
    tokens: int,
    dim: int = 4096,
    heads: int = 32,
    kv_heads: int = 8,
    ffn: int = 14336,
    num_blocks: int = 2,
    device: torch.device,
    dtype: torch.dtype,
) -> nn.Module:
    """The module, with seeded random weights of a size that keeps bf16 activations near one."""
    made = [
        Block(dim, heads=heads, kv_heads=kv_heads, ffn=ffn, device=device, dtype=dtype)
        for _ in range(num_blocks)
    ]
    module = Blocks(made, rope_frequencies(dim // heads, tokens=tokens, device=device))
    for layer in module.modules():
        if isinstance(layer, nn.Linear):
            nn.init.normal_(layer.weight, std=layer.in_features**-0.5)
    return module


def inputs(
    *, tokens: int, dim: int = 4096, device: torch.device, dtype: torch.dtype, **_: object
) -> dict[str, Tensor]:
    """The residual stream x_BTD that enters the first block; it needs a gradient, as it does in training."""
    return {"x_BTD": torch.randn(1, tokens, dim, device=device, dtype=dtype, requires_grad=True)}
