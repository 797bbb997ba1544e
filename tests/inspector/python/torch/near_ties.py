# SPDX-License-Identifier: Apache-2.0
"""Decides whether two sequences differ by rounding alone: their first different choice, measured against float64."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import torch
import transformers

import parallax

# A distance of ours to float64 up to so many times that of transformers is the same rounding, summed in another order.
ALIKE = 1.5


class KeptBeams(transformers.LogitsProcessor):
    """Records the beams that a search of transformers goes on with: a list of token rows for each number of tokens."""

    def __init__(self, start: int) -> None:
        self.start = start
        self.kept: dict[int, set[tuple[int, ...]]] = {}

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        self.kept[input_ids.shape[1] - self.start] = {tuple(row[self.start :].tolist()) for row in input_ids}
        return scores


@dataclass
class Difference:
    """A sequence that differs: all numbers are of logits (greedy) or of sums of log-probabilities (beams)."""

    theirs: float  # largest distance of transformers' values, in the model's type, to float64: mean over the whole text
    ours: float  # the same of the ONNX model on Parallax
    margin: float  # of the two choices, by float64
    bound: float  # of the margin: both distances up to the choice
    step: int

    @property
    def is_near_tie(self) -> bool:
        """Neither may ours be further from float64, nor may the two choices differ by more than rounding reaches."""
        return self.ours <= ALIKE * self.theirs and self.margin <= self.bound


class Judge:
    """The model in its type on both sides, and in float64 with the same (rounded) weights.

    A search makes one first choice that differs; what follows reads other tokens and says nothing about rounding. Let d
    be the values of float64, a those of transformers and b ours, all on the tokens up to that choice. Theirs prefers x
    and ours y, so that d(x) and d(y) differ by what a and b are away from d: `margin <= max |a - d| + max |b - d|`. The
    bound is measured, since the rounding of a logit depends on the depth and the normalizations of the model. Because a
    wrong executor would widen its own bound, b must not be further from d than ALIKE times a: means over the whole text
    are compared, since a few tokens say little about which of two errors is larger.
    """

    def __init__(self, model: Any, source: Any, generator: parallax.Generator) -> None:
        self.model, self.exact = model, copy.deepcopy(model).double()
        self.onnx = parallax.hf.from_onnx(source, model.config)
        self.generator = generator
        self.differences: list[Difference] = []

    def verdict(
        self, ids: torch.Tensor, mask: torch.Tensor, ours: list[int], expected: list[int], options: dict[str, Any]
    ) -> str:
        """ "equal", "near tie" or "wrong" of one row."""
        if ours == expected:
            return "equal"
        # Masks of eager attention overflow at padding in float64; a row by itself needs none.
        ids, mask = ids[mask > 0][None], mask[mask > 0][None]
        if options.get("num_beams", 1) > 1:
            found = self._beams(ids, mask, ours, expected, options)
        else:
            found = self._greedy(ids, mask, ours, expected)
        self.differences.append(found)
        return "near tie" if found.is_near_tie else "wrong"

    def _greedy(self, ids: torch.Tensor, mask: torch.Tensor, ours: list[int], expected: list[int]) -> Difference:
        step = next((at for at in range(min(len(ours), len(expected))) if ours[at] != expected[at]), None)
        if step is None:
            return Difference(0.0, 0.0, float("inf"), 0.0, min(len(ours), len(expected)))
        a, b, d = (self._logits(side, ids, mask, expected) for side in (self.model, self.onnx, self.exact))
        far = [(side - d).abs().amax(-1) for side in (a, b)]
        margin = float((d[step, expected[step]] - d[step, ours[step]]).abs())
        bound = sum(float(of_side[: step + 1].max()) for of_side in far)
        return Difference(float(far[0].mean()), float(far[1].mean()), margin, bound, step)

    def _beams(
        self, ids: torch.Tensor, mask: torch.Tensor, ours: list[int], expected: list[int], options: dict[str, Any]
    ) -> Difference:
        """Finds the first length at which the searches keep other beams, or end with other ones, and measures those.

        A beam that one search drops early may cost it much in the end: the final scores say nothing about rounding.
        What ours goes on with are the unfinished beams that it ends with at that length: both take the lower index of
        equal sums. With equal sets at all lengths the best two of the last set changed their order.
        """
        start, end = 1 if self.model.config.is_encoder_decoder else ids.shape[1], options["eos_token_id"]
        record = KeptBeams(start)
        self._theirs(ids, mask, {**options, "logits_processor": transformers.LogitsProcessorList([record])})
        for length in range(1, options["max_new_tokens"] + 1):
            ended = {**options, "max_new_tokens": length, "num_return_sequences": options["num_beams"]}
            a = self._theirs(ids, mask, ended)
            b = set(map(tuple, self.generator.generate(ids, mask, **ended).new_tokens))
            if a == b:
                a, b = record.kept.get(length, b), {beam for beam in b if len(beam) == length and beam[-1] != end}
            if b - a:
                return self._sums(ids, mask, sorted(a - b), sorted(b - a), expected, options, length - 1)
        return self._sums(ids, mask, [tuple(expected)], [tuple(ours)], expected, options, options["max_new_tokens"])

    def _sums(
        self, ids: torch.Tensor, mask: torch.Tensor, of_a: list[tuple[int, ...]], of_b: list[tuple[int, ...]],
        expected: list[int], options: dict[str, Any], step: int,
    ) -> Difference:
        """Compares the scores of hypotheses that only one search keeps. Distances add up over the tokens of a sum."""
        scores: dict[tuple[int, ...], float] = {}
        bound, mean = [0.0, 0.0], [0.0, 0.0]
        for tokens in [*of_a, *of_b, tuple(expected)]:
            logits = [self._logits(side, ids, mask, list(tokens)) for side in (self.model, self.onnx, self.exact)]
            a, b, d = (values.log_softmax(-1) for values in logits)
            scale = len(tokens) ** options.get("length_penalty", 1.0)
            scores[tokens] = float(d[range(len(tokens)), list(tokens)].sum()) / scale
            far = [(side - d).abs().amax(-1) for side in (a, b)]
            mean = [float(of_side.mean()) for of_side in far]  # of the last one, the whole text, in the end
            if tokens in of_a or tokens in of_b:
                bound = [max(before, float(of_side.sum()) / scale) for before, of_side in zip(bound, far)]
        margin = max(abs(scores[x] - scores[y]) for x in of_a for y in of_b)
        return Difference(*mean, margin, sum(bound), step)

    def _theirs(self, ids: torch.Tensor, mask: torch.Tensor, options: dict[str, Any]) -> set[tuple[int, ...]]:
        """New tokens of all beams by transformers, each up to the end token."""
        with torch.no_grad():
            sequences = self.model.generate(ids, attention_mask=mask, do_sample=False, **options)
        start, end = 1 if self.model.config.is_encoder_decoder else ids.shape[1], options["eos_token_id"]
        rows = [row[start:].tolist() for row in sequences]
        return {tuple(row[: row.index(end) + 1] if end in row else row) for row in rows}

    def _logits(self, side: Any, ids: torch.Tensor, mask: torch.Tensor, tokens: list[int]) -> torch.Tensor:
        """Logits [tokens, vocabulary] in float64 that a side chooses each of the tokens by."""
        text = torch.tensor([tokens])
        with torch.no_grad():
            if self.model.config.is_encoder_decoder:
                start = torch.full((1, 1), self.model.config.decoder_start_token_id)
                read = torch.cat([start, text[:, :-1]], 1)
                logits = side(input_ids=ids, attention_mask=mask, decoder_input_ids=read).logits
            else:
                whole, seen = torch.cat([ids, text[:, :-1]], 1), torch.cat([mask, torch.ones_like(text[:, :-1])], 1)
                positions = (seen.cumsum(-1) - 1).clamp(min=0)
                logits = side(input_ids=whole, attention_mask=seen, position_ids=positions).logits
                logits = logits[:, ids.shape[1] - 1 :]
        return logits[0].double()
