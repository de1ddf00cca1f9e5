"""Attention with a cache of keys and values."""

import dataclasses

import torch
from torch import nn
from torch.nn import functional

_ROTARY_BASE = 10_000.0


@dataclasses.dataclass(frozen=True, slots=True)
class Cache:
    """Keys and values of the tokens so far, at fixed addresses.

    Attributes:
        keys: (batch, heads, tokens, head width).
        values: the same.
    """

    keys: torch.Tensor
    values: torch.Tensor


class Attention(nn.Module):
    """softmax(Q K' / sqrt(d)) V, by the fused kernel that PyTorch chooses; has no weights."""

    def forward(
        self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *, causal: bool
    ) -> torch.Tensor:
        """(batch, heads, queries or keys, head width), to the shape of the queries."""
        return functional.scaled_dot_product_attention(query, key, value, is_causal=causal)


class SelfAttention(nn.Module):
    """Attention of tokens to those before them, with rotary positions (2104.09864).

    Args:
        width: features of a token.
        heads: they share the features.
        tokens: positions that can occur.
        linear: class of the matrix products.
    """

    def __init__(self, width: int, heads: int, tokens: int, linear: type[nn.Linear]) -> None:
        super().__init__()
        self.heads = heads
        self.inward = linear(width, 3 * width, bias=False)
        self.outward = linear(width, width, bias=False)
        self.attention = Attention()
        cosine, sine = _rotations(tokens, width // heads)
        self.register_buffer("cosine", cosine, persistent=False)
        self.register_buffer("sine", sine, persistent=False)

    def forward(self, x: torch.Tensor, cache: Cache | None, position: int) -> torch.Tensor:
        """Mix tokens.

        Args:
            x: (batch, tokens, width).
            cache: gets the new keys and values; those before ``position`` are attended to as well.
            position: of the first token; 0 unless the cache holds what came before.
        """
        batch, tokens, width = x.shape
        split = self.inward(x).view(batch, tokens, 3, self.heads, width // self.heads)
        query, key, value = split.permute(2, 0, 3, 1, 4).unbind(0)
        query, key = self._rotated(query, position), self._rotated(key, position)
        if cache is not None:
            end = position + tokens
            cache.keys[:, :, position:end] = key
            cache.values[:, :, position:end] = value
            key, value = cache.keys[:, :, :end], cache.values[:, :, :end]
        # One new token may look at all there is; several start at 0 and look back only.
        mixed = self.attention(query, key, value, causal=tokens > 1)
        return self.outward(mixed.transpose(1, 2).reshape(batch, tokens, width))

    def _rotated(self, x: torch.Tensor, position: int) -> torch.Tensor:
        end = position + x.shape[2]
        cosine, sine = self.cosine[position:end], self.sine[position:end]
        even, odd = x.chunk(2, dim=-1)
        return torch.cat([even * cosine - odd * sine, even * sine + odd * cosine], dim=-1).to(
            x.dtype
        )


def _rotations(tokens: int, head_width: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Cosine and sine of each position and pair of features: (tokens, head width / 2)."""
    exponents = torch.arange(0, head_width, 2, dtype=torch.float32) / head_width
    angles = torch.arange(tokens, dtype=torch.float32)[:, None] * _ROTARY_BASE**-exponents
    return angles.cos(), angles.sin()
