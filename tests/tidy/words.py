# SPDX-License-Identifier: Apache-2.0
"""The words that this tree does not use, as regular expressions with what is written instead: one row for each family.

A row counts every match in the text and the path of a source or document. Its exceptions are expressions, too: a match
that lies within a match of an exception does not count, and no match counts in a path that an exception's folder names.
"""

from __future__ import annotations

from typing import NamedTuple

# An identifier's word begins after a character that is no letter, or as a capital after a lower-case letter.
BEGIN = r"(?<![A-Za-z])"
END = r"(?![a-z])"


class Allowed(NamedTuple):
    """A use that does not count: an expression, a folder or both, and the reason."""

    reason: str
    text: str = ""  # matches around the word; empty: any use
    paths: tuple[str, ...] = ()  # beginnings of paths; empty: everywhere


class Word(NamedTuple):
    """One row: how the word is found and what is written instead."""

    name: str
    hints: tuple[str, ...]  # lower case; a line without any of them has no match
    pattern: str
    write: str
    allowed: tuple[Allowed, ...] = ()
    paths: tuple[str, ...] = ()  # beginnings of the paths where the word has the private meaning; empty: everywhere


OP_CASES = Allowed("names of operator cases", paths=("tests/ops/", "tests/tools/op_cases/"))

WORDS = (
    Word("halves", ("halves",), rf"{BEGIN}[Hh]alves{END}|[a-z]Halves{END}", "float16, bfloat16, half precision", (
        Allowed("two parts of one thing",
        r"\b(two|both|into|its|the two|of the) halves\b|halves (of|to even)\b|rounds? (\w+ )?halves"),
        OP_CASES)),
    Word("codes", ("code",), rf"{BEGIN}[Cc]odes{END}|[a-z]Codes{END}|(signed|narrow|nan|byte|between)_code\b"
                  r"|(?<![A-Za-z])code_(panel|pair|row|tile|product|step)", "quantized values; int8_, uint8_, int4_", (
        Allowed("numbers that name an error, a type or a character",
                r"(?i)(exit|error|fail|return|status|escape|type|character|utf\w*|language|key)[ _-]?codes"
                r"|HTTP codes|fail_codes"),
        Allowed("code points of characters and exit codes", paths=(
            "inspector/dump/tensor_files/utf32.cpp", "inspector/dump/tensor_files/npy.cpp", "inspector/workbench/reduce/reduce_command.cpp")),
        OP_CASES)),
    Word("byte_*, nibble_*", ("byte", "nibble"),
         r"(?i)byte_?(product|panel|conv|image|depthwise|table|tile|sum|filter|result|row|line|column|power|code)s?"
                             rf"(?![a-z])|nibble", "int8_*, int4_*", (
        Allowed("a unit of storage", r"(?i)byte counts?|byte sums? of|bytes? (per|of) \w+|bytecode"), OP_CASES)),
    Word("turn", ("turn", "lie"), rf"{BEGIN}[Tt]urned{END}|[a-z]Turn(ed|ing)?{END}|Turn(ed|ing)(?=[A-Z])"
                 r"|\bturn_(rows|image|lines|one|square|gemms|halves|neighbours|a|b)\b|must_turn|turns_first"
                 r"|\bturn\.(h|cpp)\b"
                 r"|\blies? channels last", "transpose, permute; NHWC (channels_last)", (
        Allowed("the common verb", r"(?i)turned (on|off|into|out|up|down|to)\b|(on|off) turned"),)),
    Word("place", ("place",), rf"{BEGIN}[Pp]laces?{END}|[a-z]Places?{END}|Places?(?=[A-Z])|Placed(?=[A-Z])",
         "element index, output position, graph location, buffer slot, input role", (
        Allowed("in place", r"(?i)in[ _-]place|in its place|in place of|takes? place|took place|inplace"),
        Allowed("a decimal place", r"(?i)(decimal|last)[ _]places?"),
        Allowed("a key of the contract", r"\{\"place\"|`place`", paths=(
            "inspector/cli/CLI.md", "inspector/workbench/reduce/", "gui/viewmodel/")),
        Allowed("the license's own text", paths=("LICENSE",)),
        OP_CASES)),
    Word("site", ("site",),
         rf"{BEGIN}[Ss]ites?{END}|[a-z]Sites?{END}|Sites?(?=[A-Z])", "value info, value slot, node location", (
        Allowed("a folder of Python, a call site, a page of the web",
        r"site[-_]packages|call[ _]sites?_?|web ?site"),
        Allowed("a class of the Python package and its argument", r"\b[Ss]ite\b", paths=("inspector/python/",
        "tests/inspector/python/")))),
    Word("image", ("image",), r"(?i)images?", "feature maps, NCHW activations; im2col", (
        Allowed("pictures", r"(?i)image_?(decoder|scaler)|png_image\w*|opj_image\w*", ),
        Allowed("pictures", paths=("reference/images/", "reference/ops/spatial/image_decoder", "reference/README.md",
                                   "reference/CMakeLists.txt")),
        Allowed("an input of Col2Im", r"\bimage_shape\b")),
         paths=("runtime/", "reference/", "tests/runtime/", "inspector/transform/", "inspector/tensor/")),
    Word("outbox, parcel, told", ("outbox", "parcel", "heard", "told"),
         rf"[Oo]utbox|{BEGIN}[Pp]arcels?{END}|unheard|{BEGIN}[Hh]eard{END}|{BEGIN}[Tt]old{END}|[a-z]Told{END}",
         "event queue, pending event, pending value, notify, reported", (
        Allowed("to tell two things apart, to give an order",
                r"told[ _]apart|\w*ToldApart|told[ _](\w+ )?from|told (otherwise|to\b)"),)),
    Word("letter, post", ("letter", "post"),
         rf"{BEGIN}(?i:letters?|post(s|ed)?){END}|[a-z]Letters?{END}", "pending event, enqueue",
         paths=("runtime/plan/", "tests/runtime/plan/")),
    Word("leftovers", ("left", "clear"), r"(?i)left_?overs?|clear(s|ed)?[_ ]up", "temporary files, cleanup at signals"),
    Word("guilty", ("guilt",), r"(?i)guilt", "culprit, root cause, localize"),
    Word("trials", ("trial",), rf"{BEGIN}(?i:trials?){END}|[a-z]Trials?{END}", "counterfactuals, interventions"),
    Word("withdraw", ("withdr", "back", "part_"),
         r"(?i)withdr[ae]w|t[ao]ke?n?[ _]back|took[ _]back|part_(pairs|withdrawn)", "unmatch, split a match"),
    Word("leaves nothing, made up for", ("nothing", "up"),
         r"(?i)leaves? nothing\b(?! else)|ma[dk]es?[ _]up[ _]for", "absorbed, compensated"),
    Word("felt", ("felt",),
         rf"{BEGIN}(?i:(un)?felt){END}|kFelt|[a-z]Felt{END}", "without observable effect, observable"),
    Word("matter", ("matter",),
         rf"{BEGIN}(?i:matters?){END}|[a-z]Matters?{END}", "relevant, irrelevant", (Allowed("no matter how",
         r"(?i)\bno matter (how|what|which|where)"),)),
    Word("otherwise", ("otherwise",),
         r"(?i)(written|reads?|stored|defined|made|folded|compared|fused|quantized)[_ ]?otherwise",
         "equivalent constant, different"),
    Word("hand over", ("hand",), r"(?i)hand(s|ed|ing)?[_ ]?over", "control-flow copy, carried value"),
    Word("grown rounding", ("grown", "grew"),
         r"(?i)grown[_ ]?(rounding|inputs)|kGrown|(?i:what rounding grew)", "accumulated rounding"),
    Word("why_*", ("why",), rf"{BEGIN}why_\w+|{BEGIN}Why[A-Z]\w*|\w+_why\b|\bwhy\.(h|cpp)", "explanation, explain_*"),
    Word("spread", ("spread",),
         r"\bSpread\b|kSpread|spread_to", "error propagation: copy, relative, gated, absolute, dot product"),
    Word("apart", ("apart",), rf"{BEGIN}[Aa]part{END}|[a-z]Apart{END}", "diverged, mismatched", (
        Allowed("to tell, take or keep two things apart",
        r"(?i)(tell|tells|telling|told|tell_masks|take|takes|keep|keeps|kept|pulled|stay|stays)"
                r"( \w+| \w+ \w+)?[ _]apart"
                r"|tell\w*Apart|ToldApart|Keep\w*Apart|can_tell_apart|[Aa]part from"),
        Allowed("a name of the Python package", r"outputs_apart|first_token_apart"),
        Allowed("texts and keys of the contract", r"token apart|apart at step|\{\"apart\""))),
    Word("rounds, looks, patience", ("patience", "looks", "rounds"),
         rf"(?i:patience)|Looks(?=[A-Z])|\bkLooks\w*|kElementsBetweenLooks|\blooks_(ahead)?\b|\brounds_\b"
         r"|\bclass Rounds\b|\bRoundsMember\b"
         r"|\brounds\.(h|cpp)\b|rounds_test", "phases, spins, spin limit"),
    Word("laced, strips, tame", ("laced", "strip", "tame"),
         rf"{BEGIN}[Ll]aced{END}|kLaced|{BEGIN}[Ss]trips?{END}(?!\()|{BEGIN}tame{END}|[a-z]Tame{END}",
         "interleaved, row tiles, within the fast range", paths=("runtime/", "reference/", "tests/runtime/",
         "inspector/diff/")),
    Word("ms_*", ("ms",), r"(?<![A-Za-z0-9_])(op_)?ms_(?!(a|b|since|of_item)\b)(?=[a-z])|\bkMs(?=[A-Z])",
         "contrib/", (OP_CASES,)),
    Word("doings, glass, stage", ("doings", "glass"),
         rf"(?i:doings)|{BEGIN}(?i:glass){END}", "UI script, selected value"),
    Word("stage", ("stage",),
         rf"{BEGIN}[Ss]tages?{END}|[a-z]Stage{END}|Stage(?=[A-Z])", "render target", paths=("gui/", "tests/gui/")),
    Word("behind", ("behind",), rf"{BEGIN}(?i:behind){END}|[a-z]Behind{END}", "after"),
    Word("beside", ("beside",), rf"{BEGIN}(?i:beside){END}|[a-z]Beside{END}", "next to, compared with"),
    Word("lies", ("lie",),
         r"\blies?\b", "is stored, is", (Allowed("a range", r"\b(must|does not) lie (in|between|within)"), OP_CASES)),
    # The last three letters of quantise, normalise, vectorise, ...: a look behind of one width is fast.
    Word("British spelling", ("ise", "isi", "isa", "our", "entre", "grey", "lled", "lling", "catalogue", "quantis"),
         r"(?<=ant|mal|tor|tim|ial|mar|nim|xim|ogn|gan|ron|ral|lel|til|nal|ter|gor|tom|ual|rit|bil|ard|ken|eal|mor"
                             r"|cal|ear|dom|nar|ret|bol|git|has)is(?:e[dsr]?|ing|ations?|ers|able)(?![a-z])"
                             r"|[Aa]nalys(?:e[drs]?|ing)(?![a-z])"
                             r"|[Cc]olour|COLOUR|[Nn]eighbour|[Bb]ehaviour|[Ff]lavour|[Hh]onour|[Ff]avour"
                             r"|(?:(?<![a-z])c|C)entre[ds]?(?![a-z])"
                             r"|barycentre|(?<![a-z])grey(?:s|ed)?(?![a-z])"
                             r"|[Ll]abell(?:ed|ing)|[Mm]odell(?:ed|ing)|[Cc]atalogue|QUANTIS",
         "American spelling: quantize, normalize, color, neighbor, behavior, center", (
        Allowed("an option or a key of the contract", r"--(no-)?colou?r\w*|\"colour_by\"|\bcolour-by\b"),
        Allowed("names of the viewer's commands and keys, which scripts use",
                r"\bcolour\.[\w{]+|\bcolour_by\b|maximise_tensor"),
        Allowed("an option of the command line", r"--minimise\b|\"minimise\"", paths=("inspector/", "tests/")),
        Allowed("a name of the Python package", r"\bminimise\b|\boptimised\b", paths=("inspector/python/",
        "tests/inspector/python/", "tests/bench/", "samples/")),
        Allowed("texts that the files of operator cases repeat", r"(?i)quantised|neighbour|unnormalised",
                paths=("tests/tools/op_cases/",)),
        Allowed("a library's own name", r"graph_optimisation"))),
)
