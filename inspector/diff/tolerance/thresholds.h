// SPDX-License-Identifier: Apache-2.0
// Thresholds of comparison and diagnosis: every number that decides, each with where it comes from. "Set on
// tests/diagnosis" means that it separates the healthy from the faulty pairs of that set.
#pragma once

#include <cstddef>
#include <cstdint>

namespace parallax::thresholds {

// ---- The noise model of auto ----

// Epsilons of the result's type: two executions that round a result, each by itself, differ by half a unit each (IEEE
// 754, rounding to nearest).
inline constexpr double kStoringError = 0.5;
// Epsilons that operators add besides storing their result: none for copies and correctly rounded arithmetic (IEEE
// 754); two units for functions of a math library, whose documented errors are 1 to 4 units; one for means, whose
// terms' roundings cancel; three for normalizations (a mean, a square root and a quotient); eight where several steps
// are fused or the operator is unknown. Set on tests/diagnosis.
inline constexpr double kRoundedOnce = 0;
inline constexpr double kFunctionEpsilons = 2;
inline constexpr double kMeanEpsilons = 1;
inline constexpr double kNormEpsilons = 3;
inline constexpr double kRoomyEpsilons = 8;
// The largest slope of bounded activations: that of GELU is 1.13, that of Swish 1.10.
inline constexpr double kLargestActivationSlope = 1.2;
// Relative error of exp(x) for an absolute error of x, doubled: the sum of a softmax has one, too.
inline constexpr double kExponentialSlope = 2;
// Normalization divides by a deviation that has the error of its operand, too. Set on tests/diagnosis.
inline constexpr double kNormalizedError = 1.5;
// A recurrent state carries the errors of earlier steps. Set on tests/diagnosis.
inline constexpr double kRecurrentError = 4;
// Times the error of an operand, where nothing is known of an operator. Set on tests/diagnosis.
inline constexpr double kUnknownError = 2;
// The rounding of a sum, in epsilons: this share of the square root of the number of terms, since blocked sums round
// less often than a plain loop (Higham, Accuracy and Stability of Numerical Algorithms, section 4.2).
inline constexpr double kSummingShare = 1.0 / 8;
// And where a node adds more operands than some hundreds one after the other: this share of their number, since equal
// operands round the same way at each step, up to a sixteenth of it (measured for 64 to 25,000 equal operands: 0.075),
// and 16 deviations are allowed.
inline constexpr double kOneByOneShare = 1.0 / 128;
// Neighbors of which the largest is looked at, to know the steps that blocks of them are quantized with.
inline constexpr int64_t kSampledRun = 16;
// The rounding of coordinates in float32, in epsilons of the axis's length: the quotient of the lengths, the product
// with an index and the sum with an offset round once each, by a quarter of a unit on average. Another runtime's
// kernels compute them so; ours in double.
inline constexpr double kCoordinateEpsilons = 0.5;
// The difference to an expected output of a quantized model in relation to that of two executors: near ties flip other
// elements in each pair of programs.
inline constexpr double kMeasuredRoom = 2;
// Units in the last place of float32 by which inputs and stored floats are moved, one after the other, to see what the
// near ties of a quantized model do to its outputs. The largest, 8e-6 of a number, is less than expected outputs in
// float32 may differ (kExpectedFloat32).
inline constexpr double kNudgedNearTies[] = {4, 16, 64};
// Elements of a stored tensor that is moved so: scales, biases and small weights.
inline constexpr int64_t kMostNudgedElements = int64_t{1} << 16;
// The root mean square of 8-bit weights, in steps: normal ones whose largest of some thousands, four deviations off, is
// at the end of the range.
inline constexpr double kOrdinaryQuantized = 32;
// Steps that a constant stored quantized may differ from the float that it stands for: rounding to the nearest one
// leaves half a step, rounding that is learned (Nagel et al., Up or Down? Adaptive Rounding) less than a whole one.
inline constexpr double kHeldSteps = 1;
// Severity up to which a quantized value may exceed its limit where every step before it is within its own: the limit
// is made of estimates of magnitudes and of the shares of many steps. Set on the pairs of real tools, seeds 1 to 9.
inline constexpr double kNearQuantization = 3;
// As a share of a quantization step: the rounding of the two numbers that are one step from each other.
inline constexpr double kStepRounding = 1e-3;
// Standard deviations that a quantized value may be off: sums of uniform errors have no tails, and their estimates are
// close. Set on the quantized pairs of tests/diagnosis.
inline constexpr double kQuantizedMargin = 6;
// Standard deviations that the root mean square of a quantized value's differences may be: more than one, since the
// noise model estimates it. Set on the pairs of real tools.
inline constexpr double kQuantizedRms = 2;
// As a share of a value's size: the largest error of 8-bit quantization that is believed; coarser steps, and values
// that were not compared, are not. A uniform step of 1/5 of the size has this deviation (step / sqrt(12)).
inline constexpr double kMostQuantizationError = 0.06;
// The largest error of quantization that a limit allows at any depth: as a share of the value's size, and times that of
// the coarsest steps on the way, which are those of 4 bits where this counts. Set on tests/diagnosis.
inline constexpr double kDeepestQuantizationError = 0.1;
inline constexpr double kDeepestInSteps = 3;
// As a share of a value's size, where the source of the quantized values is not known: half of the largest that is
// believed.
inline constexpr double kUnknownQuantizationError = 0.03;
// Estimated magnitudes, of values that were fused away or left out, may be this much too large. Set on the fused pairs
// of tests/diagnosis.
inline constexpr double kEstimatedMagnitudeRoom = 4;
// An operand that is this much larger than the result, or an element this much above a low quantile of the others, is a
// mask (-1e9) and no magnitude. 2^14: beyond the ratio of ordinary elements of one tensor.
inline constexpr double kMaskRatio = 16384;
// Results smaller than this count as this large where masks are recognized.
inline constexpr double kSmallestMaskedRms = 0.25;
// An error that cancellation has magnified says nothing of elements without cancellation: the relative part of a limit
// stays below this.
inline constexpr double kLargestRtol = 0.25;
// The elements of one tensor differ unequally: a difference found at an input may be this much larger in others. Three
// standard deviations.
inline constexpr double kFoundDifferenceRoom = 3;
// No element below this is a mask.
inline constexpr double kSmallestMask = 256;
// As a share of the range of quantized values: the excess of another input's largest numbers over those that a scale
// was calibrated for.
inline constexpr double kSaturationRoom = 1.0 / 8;
// Elements: that many computed floats that are all equal are mistrusted; fewer may well be equal.
inline constexpr int64_t kSuspiciouslyEqual = 16;
// The least absolute tolerance of outputs against a test data set, as ONNX's backend tests use it.
inline constexpr double kSmallestExpectedAtol = 1e-7;
// Tolerances of outputs against a test data set: relative, and absolute as a part of the value's root mean square, so
// that cancellation in a long sum is no alarm. ONNX's backend tests compare with rtol 1e-3 (onnx/backend/test/runner);
// narrow types get a few units of their own, those of 8 bits and fewer one unit in the last place.
struct ExpectedTolerance {
  double rtol;
  double atol_relative_to_rms;
};
inline constexpr ExpectedTolerance kExpectedFloat64 = {1e-7, 1e-9};
inline constexpr ExpectedTolerance kExpectedFloat32 = {1e-3, 1e-5};
inline constexpr ExpectedTolerance kExpectedFloat16 = {1e-2, 1e-2};
inline constexpr ExpectedTolerance kExpectedBfloat16 = {5e-2, 5e-2};
inline constexpr ExpectedTolerance kExpectedNarrow = {0.25, 0.25};
// Scores at or below it are hidden by a mask: the number that exporters write for minus infinity.
inline constexpr float kMaskedScore = -1e9F;

// Times the root mean square of a compared value's differences: the error that a copy of it is given, whose elements
// differ unequally.
inline constexpr double kInheritedRoom = 2;
// The part of the largest difference that the copy's error is at least: the largest of some thousand normal deviations.
inline constexpr double kInheritedFarthest = 4;

// ---- Two definitions of one value ----

// Sizes that no numbers but masks have.
inline constexpr double kMaskedSize = 1e4;
// As a share of a value's size, when the oracle runs both: definitions that mean the same part by the rounding of
// constants alone (weights folded in float32: a few 2^-24, accumulated).
inline constexpr double kSameDefinition = 2e-6;
// Constants that different programs folded: a few units in the last place of float32 (2^-23 each), of the element's own
// size or of ordinary size.
inline constexpr double kFoldedAlike = 5e-7;
// The share of values paired by content whose names agree, from which on names are trusted: an inserted node may have
// moved some.
inline constexpr double kSureNameShare = 0.9;
// Confidence of a match from which on two values are surely the same. Set on tests/diagnosis.
inline constexpr double kSureMatch = 0.6;

// ---- Causes within one model ----

// Units in the last place that rounding the result of any node may cost: a kernel may go through a narrower type and
// back.
inline constexpr double kAlwaysAllowedUlps = 8;
// Units in the last place by which inputs are moved to bound the backward error (Higham, Accuracy and Stability of
// Numerical Algorithms, section 1.5).
inline constexpr double kBackwardUlps = 2;
// The error of a node may be this many times what moved inputs do to it: three random moves see about an eighth of the
// worst case.
inline constexpr double kBackwardMargin = 8;
// A node whose error is this many times what the first move does is not ill-conditioned: no more moves are tried.
inline constexpr double kBeyondBackward = 64;
// Severity up to which a changed definition explains a result: within rounding, with room for that of a second
// computation.
inline constexpr double kNearRounding = 1.5;
// Severity up to which a number explains a result to rounding, so that it is the number: rounding that a limit leaves
// room for is seldom larger.
inline constexpr double kExactFit = 0.5;
// Share of a narrow computation's errors that must be those seen, before the narrow type is named.
inline constexpr double kNarrowPatternShare = 0.9;
// Errors up to this many times the table's may be another order or type of accumulation.
inline constexpr double kAccumulationFactor = 16;
// Relative step of the difference quotient in a fit of one constant (the square root of float32's epsilon, rounded
// down).
inline constexpr double kFitStep = 1e-4;
// Roundings an element by which a signed sum of the same elements may move; beyond, they are in another order.
inline constexpr double kReorderedRoundings = 4;
// Relative change of a moment that seven printed digits do not show.
inline constexpr double kSameStatistics = 1e-6;

// ---- Causes between two models ----

// As a share of a value's size: a difference this small makes no other result.
inline constexpr double kUnseenDifference = 1e-6;
// As a share of the difference of two definitions: a counterfactual that leaves no more than this has explained it.
inline constexpr double kCounterfactualShare = 0.02;
// As a share of a value's size: what quantization may take from it before more than rounding is suspected.
inline constexpr double kLargestQuantizationShare = 0.5;
// As a share of the largest effect of a quantization: effects below it are not listed with it.
inline constexpr double kObservableShare = 0.1;
// Units in the last place of float32 by which all that is read is moved: more than a folded constant is off.
inline constexpr double kNudgedUlps = 4;
// As a share of a narrow type's largest number: constants beyond its range are clamped to a number at least this large.
inline constexpr double kClampedRange = 1.0 / 8;
// An element may differ by this many times what moved inputs do to it.
inline constexpr double kNudgedMargin = 4;
// Quantization steps from the middle of two: factors rounded to float32 (2^-24) have this effect on numbers of up to
// 255 steps, with a margin of ten.
inline constexpr double kNearTie = 2e-4;
// As a share of a value's size: an effect that is no more than rounding.
inline constexpr double kNoTrace = 1e-5;
// As a share of a value's size: values that differ by more leave a trace above kNoTrace when they are truly wrong.
inline constexpr double kGrossDifference = 1e-2;
// The trace that smaller differences may leave.
inline constexpr double kExactTrace = 1e-8;

// ---- Limits of effort: counts and milliseconds, beyond which a search stops and says so ----

// For explanations of one node.
inline constexpr double kExplanationMs = 400;
// Operands of a node that are tried in pairs, exchanged: 496 pairs.
inline constexpr size_t kMostSwappedOperands = 32;
// For all other nodes of its group.
inline constexpr double kGroupExplanationMs = 1600;
// Causes that get an explanation, the best ranked.
inline constexpr size_t kExplainedCauses = 8;
// Instances of one node in a body that are judged, when it is wrong that often.
inline constexpr int64_t kJudgedInstances = 64;
// Causes that are listed.
inline constexpr size_t kMostCauses = 100;
// Nodes fused into one, or left out of a capture, one after the other.
inline constexpr int kLongestFusedChain = 64;
// Nodes that are judged as one.
inline constexpr size_t kLargestGroup = 128;
// Instances of one value in bodies that are compared.
inline constexpr size_t kMostModelInstances = 24;
// Values that were fused away and are computed.
inline constexpr size_t kMostUncaptured = 1024;
// Nodes of a region in which single differences are tried.
inline constexpr size_t kMostTriedNodes = 96;
// Nodes that compute in half precision within a model of floats: fewer are a fault and no mixed precision.
inline constexpr int64_t kFewestOfMixed = 4;
// QuantizeLinear nodes of a model without stored quantized values: fewer are a fault and no quantization.
inline constexpr int64_t kFewestQuantizers = 3;
// Nodes of a region.
inline constexpr int kLargestRegion = 96;
// Elements of a value inside a region that is compared with all of the other side: fewer agree by chance; more are too
// many for a search.
inline constexpr size_t kFewestTellingElements = 4;
inline constexpr int64_t kMostComparedElements = int64_t{1} << 22;
// Axes of a tensor of which all permutations are tried.
inline constexpr size_t kMostPermutedAxes = 5;
// Pairs of values inside a region that are tried as the one where all of the difference begins, nearest first.
inline constexpr size_t kMostTriedPairs = 64;

}  // namespace parallax::thresholds
