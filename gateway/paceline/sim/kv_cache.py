"""The KV cache as an engine budgets it: blocks of tokens, handed out and taken back."""

from __future__ import annotations

from paceline.sim.generation import Generation

BLOCK_TOKENS = 16  # vLLM's default block size


class KvCache:
    """`num_tokens` of capacity, rounded down to whole blocks. There is no prefix cache: each
    sequence has blocks of its own."""

    def __init__(self, num_tokens: int, block_tokens: int = BLOCK_TOKENS) -> None:
        self._block_tokens = block_tokens
        self.num_blocks = num_tokens // block_tokens
        self.used_blocks = 0
        if self.num_blocks < 1:
            raise ValueError(f"a KV cache of {num_tokens} tokens is less than a block")

    @property
    def usage(self) -> float:
        """The fraction in use."""
        return self.used_blocks / self.num_blocks

    def fits(self, num_tokens: int) -> bool:
        """Whether one sequence of that length would, alone."""
        return self._blocks(num_tokens) <= self.num_blocks

    def grow(self, generation: Generation, num_tokens: int) -> bool:
        """Give a sequence blocks for `num_tokens` in all; False, and nothing given, if they are
        not there."""
        more = self._blocks(num_tokens) - generation.blocks
        if more > self.num_blocks - self.used_blocks:
            return False
        if more > 0:
            generation.blocks += more
            self.used_blocks += more
        return True

    def free(self, generation: Generation) -> None:
        self.used_blocks -= generation.blocks
        generation.blocks = 0

    def _blocks(self, num_tokens: int) -> int:
        return -(-num_tokens // self._block_tokens)
