"""Evidence about outcomes: bounds, paired and stratified comparisons, boards, frontiers. numpy and scipy only.

Arrays and counts in, small frozen results out. A missing outcome is missing: it widens a bound, it is never a zero.
Sources: SOURCES S2 (the paper on silent instrument errors) unless a file names another.
"""

from harness.stats.board import Board, board
from harness.stats.breakeven import BreakEven, break_even
from harness.stats.coverage import StratumCoverage, coverage_by_stratum
from harness.stats.effects import Effects, two_way_effects
from harness.stats.episodes import Episodes, Side
from harness.stats.errors import StatsError
from harness.stats.frontier import Candidate, FrontierPoint, frontier
from harness.stats.identification import Counts, Interval, ValidShare, identified, identified_difference, valid_share
from harness.stats.mcnemar import McNemar, mcnemar
from harness.stats.multiplicity import benjamini_hochberg, holm
from harness.stats.paired import PairedInterval, paired_interval
from harness.stats.proportion import clopper_pearson, jeffreys, wilson
from harness.stats.repeats import RepeatShare, pass_all_k, pass_any_k
from harness.stats.reversals import Reversals, reversals
from harness.stats.stratified import WeightedComparison, Weighting, weighted_comparison
from harness.stats.tipping import TippingPoint, tipping_point
from harness.stats.transitions import Transitions, transitions
from harness.stats.verdict import Verdict, verdict

__all__ = [
    "Board",
    "BreakEven",
    "Candidate",
    "Counts",
    "Effects",
    "Episodes",
    "FrontierPoint",
    "Interval",
    "McNemar",
    "PairedInterval",
    "RepeatShare",
    "Reversals",
    "Side",
    "StatsError",
    "StratumCoverage",
    "TippingPoint",
    "Transitions",
    "ValidShare",
    "Verdict",
    "WeightedComparison",
    "Weighting",
    "benjamini_hochberg",
    "board",
    "break_even",
    "clopper_pearson",
    "coverage_by_stratum",
    "frontier",
    "holm",
    "identified",
    "identified_difference",
    "jeffreys",
    "mcnemar",
    "paired_interval",
    "pass_all_k",
    "pass_any_k",
    "reversals",
    "tipping_point",
    "transitions",
    "two_way_effects",
    "valid_share",
    "verdict",
    "weighted_comparison",
    "wilson",
]
