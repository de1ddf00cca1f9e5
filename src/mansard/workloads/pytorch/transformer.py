"""A decoder-only transformer: norm first, rotary positions, SwiGLU."""

import torch
from torch import nn
from torch.nn import functional

from mansard.workloads.pytorch.attention import Cache, SelfAttention
from mansard.workloads.workload import TokenSize

#: The hidden width is rounded up to a multiple of this, for the tiles of matrix products.
_ROUNDING = 64
_INITIAL_DEVIATION = 0.02


def hidden_width(width: int) -> int:
    """8/3 of the width, rounded up: three matrices cost what two of 4 times would (2002.05202)."""
    return -(-8 * width // (3 * _ROUNDING)) * _ROUNDING


class _FeedForward(nn.Module):
    def __init__(self, width: int, linear: type[nn.Linear]) -> None:
        super().__init__()
        hidden = hidden_width(width)
        self.inward = linear(width, 2 * hidden, bias=False)
        self.outward = linear(hidden, width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        gate, up = self.inward(x).chunk(2, dim=-1)
        return self.outward(functional.silu(gate) * up)


class _Block(nn.Module):
    def __init__(self, size: TokenSize, linear: type[nn.Linear]) -> None:
        super().__init__()
        self.norm_mix, self.norm_feed = nn.RMSNorm(size.width), nn.RMSNorm(size.width)
        self.mix = SelfAttention(size.width, size.heads, size.tokens, linear)
        self.feed = _FeedForward(size.width, linear)

    def forward(self, x: torch.Tensor, cache: Cache | None, position: int) -> torch.Tensor:
        x = x + self.mix(self.norm_mix(x), cache, position)
        return x + self.feed(self.norm_feed(x))


class Transformer(nn.Module):
    """Tokens to the scores of the next token.

    Args:
        size: of everything.
        linear: class of the matrix products inside the blocks; the last one stays as it is, since
            its scores are what is learned from.
    """

    def __init__(self, size: TokenSize, *, linear: type[nn.Linear] = nn.Linear) -> None:
        super().__init__()
        self.size = size
        self.embed = nn.Embedding(size.vocabulary, size.width)
        self.blocks = nn.ModuleList(_Block(size, linear) for _ in range(size.layers))
        self.norm = nn.RMSNorm(size.width)
        self.score = nn.Linear(size.width, size.vocabulary, bias=False)
        for module in self.modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                nn.init.normal_(module.weight, std=_INITIAL_DEVIATION)

    def forward(
        self,
        tokens: torch.Tensor,
        caches: list[Cache] | None = None,
        *,
        position: int = 0,
        last: bool = False,
    ) -> torch.Tensor:
        """Scores (batch, tokens, vocabulary).

        Args:
            tokens: (batch, tokens), whole numbers.
            caches: one a block.
            position: of the first token.
            last: score the last token only, as when text is generated.
        """
        x = self.embed(tokens)
        for index, block in enumerate(self.blocks):
            x = block(x, None if caches is None else caches[index], position)
        return self.score(self.norm(x[:, -1:] if last else x))

    def make_caches(self) -> list[Cache]:
        """Empty caches for all positions, on the device and in the type of the weights."""
        size, like = self.size, self.embed.weight
        shape = (size.batch, size.heads, size.tokens, size.width // size.heads)
        return [Cache(like.new_zeros(shape), like.new_zeros(shape)) for _ in self.blocks]
