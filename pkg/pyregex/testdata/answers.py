"""Prints what Python's re answers to the cases below: python3 answers.py > answers.json

A case is an operation, a pattern, a text, and where they are needed flags (letters) and a replacement.
Answers are spans in characters: of the match and its groups, and for all of them a list of these.
"""

import json
import re
import warnings

warnings.simplefilter("ignore")

CASES = []


def case(op, pattern, text="", flags="", repl=None):
    CASES.append((op, pattern, text, flags, repl))


def search(pattern, *texts, flags=""):
    for text in texts:
        case("search", pattern, text, flags)


def errors(*patterns):
    for pattern in patterns:
        case("search", pattern)


# braces that repeat, and braces that do not
search("a{,2}b", "aaab", "b", "a{,2}b")
search("a{2}", "aaa")
search("a{2,}", "aaaa", "a")
search("a{2,3}?", "aaaa")
search("{,", "{,")
search("a{,", "a{,")
search("a{}", "a{}", "a")
search("a{1,b}", "a{1,b}")
search("a{,}b", "aab")
search("x{0}y", "xy")
search("a{1001}", "a" * 1002)
search("(?:ab){,2}c", "ababababc")
errors("x{2,1}", "{1}", "*", "+a", "?", "a**", "a*{2}", "a??+", "a{2}{3}", "^*", r"\b+", "$?", "(*a)", "a|*", "(?i)*", "a{4294967295}")
search("(?:^)*a", "a")
search("(?:)*", "a")

# places
for text in "a", "a\n", "a\n\n", "ba", "a\nb":
    search("a$", text)
    search("a$", text, flags="m")
    search(r"a\Z", text)
    search(r"\Aa", text)
    search("^a", text, flags="m")
errors(r"a\z")
case("all", "$", "a\n")
case("all", "$", "a\n", "m")
case("all", "^", "a\nb\n", "m")
search(r"\ba\b", "éa", " a ", "a", "_a")
search(r"\ba\b", "éa", flags="a")
search(r"\B", "", "a", "ab")
search(r"\Ba", "ba", "éa", " a")

# kinds of characters, and Unicode
search(r"\d+", "a12", "٣٤", "²")
search(r"\d+", "٣٤5", flags="a")
search(r"\w+", "naïve-x", "日本語", "½²", "a_1")
search(r"\w+", "naïve", flags="a")
search(r"\W+", "aéb", "a-b")
search(r"\W+", "aéb", flags="a")
search(r"\s+", "a\x1c\x1d\x0b b", "a\u00a0b", "a\u2028b", "a\u200bb")
search(r"\s+", "a\x1c", "a\x0b", flags="a")
search(r"\S+", " é ")
search(r"\D\D", "1éa")
search(r"[\w.]+", "ä.ö-")
search(r"[^\W\d]+", "1é2", "1a2")
search(r"[\s\S]", "\n", "é")
search(".", "\n", "\r", "\u2028")
search(".", "\n", flags="s")
search("(?s:.)a", "\na")
search("é", "caf\u00e9")
search("[à-ÿ]+", "caféà")
search("日.語", "日本語")

# cases
search("straße", "STRASSE", "STRAẞE", flags="i")
search("[k]", "\u212a", flags="i")
search("k", "\u212a", "K", flags="i")
search("k", "\u212a", flags="ia")
search("é", "É", flags="i")
search("é", "É", flags="ia")
search("i", "İ", "ı", "I", flags="i")
search("[h-j]", "ı", "I", flags="i")
search("[^a]", "A", "b", flags="i")
search("[A-Z]+", "abC", flags="i")
search("[Z-a]+", "zA^", flags="i")
search(r"\W", "Kk", flags="i")
search(r"[^\W]", "k", "\u212a", flags="i")
search("σ", "ς", "Σ", flags="i")
search("s", "ſ", flags="i")
search("(?i)abc", "xABC")
search("(?i:a)b", "Ab", "AB")
search("(?-i:a)b", "aB", "AB", flags="i")
search("(?i:a(?-i:b))", "Ab", "AB")
search(r"(a)\1", "aA", flags="i")
search(r"(ä)\1", "äÄ", flags="i")
errors("a(?i)b", "(a(?i)b)", "a|(?i)b", "(?i", "(?i-", "(?i-:a", "(?-)", "(?z)", "(?iz)", "(?i-z:a)", "(?i,)", "(?-i)", "(?a-a:b)", "(?L)a", "(?au)a",
       "(?i-i:a)", "(?i)(?m)(?s)(?x)(?a)(?u)")
search("(?i)(?m)^a", "b\nA")
search("(?im)^a", "b\nA")
search("(?u:é)", "é")
search(r"(?a:\w)", "é", "e")
search(r"a(?u:\w)", "aé", flags="a")

# sets
search("[[:alpha:]]", "a]", ":]", "x]", "x")
search("[]a]+", "]a]", "b")
search("[^]a]", "]", "b")
search("[[a]]", "a]", "[]", "a")
search("[a[b]c", "[c")
search("[a-]", "-")
search("[-a]", "-")
search(r"[\]]", "]")
search(r"[a\-z]+", "b", "-z")
search(r"[\d-x]+", "-1x")
search("[a-b-c]+", "a-c")
search("[a--]", "-")
search("[&&]", "&")
search("[a^]", "^")
search(r"[\b]", "\b")
search(r"[\n\t\\]+", "\\\n\t")
search(r"[.*+?(){}|$]+", "(.*)|$")
search("[\\^a]", "^")
search("[^\\n]+", "a\nb")
search(r"[\d]", "d", "1")
search(r"[\0-\x1f]", "\x10")
search("[{,3}]", ",")
errors("[", "[]", "[^]", "[a", "[z-a]", r"[\d-z]", r"[a-\d]", r"[\q]", r"[\Z]", r"[\8]", r"[\400]", r"[\x4]", "[a-", r"[\x41-\x40]", r"[\1]", r"[\B]")

# groups, names and references
search("(a)(b)?", "ac", "ab")
search("((a)|b)*", "ab", "ba")
search("(?:(a)|b)*", "ab")
search("(a|b)*", "abab")
search("(?P<n>a)(?P=n)", "aa", "ab")
search("(?P<n>a)(?P<m>b)(?P=m)(?P=n)", "abba")
search(r"(?P<n>.)(x)\2\1", "axxa")
search(r"(a)|\1b", "b", "a")
search(r"(.)\1+", "abccc")
search(r"(é)\1", "éé")
search(r"(a)(b)(c)(d)(e)(f)(g)(h)(i)(j)\10", "abcdefghijj")
search(r"(a)\1" + "1", "aa1")
errors(r"\1", r"(a)\2", r"(a\1)", "(?P=n)", "(?P<n>a(?P=n))", "(?P<n>a)(?P<n>b)", "(?P<1>a)", "(?P<n", "(?P<>a)", "(?P<a b>c)", "(?P=", "(?P=n",
       "(?P>n)", "(?P", "(?<n>a)", "(?&n)", "(?R)", "(?", "(?<", "(", "(a", ")", "a)b", "(a))", "(a|", "(?:a", "(?#a", "(?'n'a)", "(?P<é>a)", "(?|a)", "(?1)",
       "(?P<a'b>c)", "a\n(b", "a\nb\n(?i)", "(?P<x>a)\n(?P<x>b)", "((a)(b)\\3)")
search("(?#a comment)b", "b")
search("a(?#c)*", "aaa")
search("(?:a|ab)(?:c|bcd)(d*)", "abcd")
search("(a+|b+|c+)*", "aabbcc")
search("(a*)*", "b", "aab")
search("(a*)+", "b", "aa")
search("(?:a*)*b", "aab")
search("(a|b*)*c", "abbac")
search("(|a)*", "aa")
search("(|a)+", "aa")
search("(a|b|)+?c", "abc")
search("(a??)*b", "aab")
search("()*a", "a")

# conditions
search("(a)?(?(1)b|c)", "ab", "c", "ac", "b")
search("(?P<q>\")?x(?(q)\")", '"x"', "x", '"x')
search("(?:(a)|b)(?(1)c)", "ac", "bd", "ad")
errors("(?(1)a)", "(?(n)a)", "(a)?(?(1)a|b|c)", "(?(0)a)", "(?(1", "(?(1)", "(?(-1)a)", "(?()a)", "(a)(?(2)b)", "(?(a b)c)", "(?<=(a)(?(1)b))")

# lookaround
search("a(?=b)", "ab", "ac")
search("a(?!b)", "ab", "ac")
search("(?<=a)b", "ab", "cb", "b")
search("(?<!a)b", "ab", "cb", "b")
search("(?<=é)b", "éb")
search("(?<=a|b)c", "ac", "bc", "cc")
search("(?<=(a))b", "ab")
search("(?=(a+))a*b", "baaab")
search("(?=(a))(?=(ab))a", "ab")
search("(?!(a)b)a", "ac")
search("^(?!.*foo).*$", "a bar", "a foo")
search("(?:(?!foo).)*", "a foo")
search("(?<=^a)b", "ab", "xab")
search("(?<=a{2})b", "aab", "ab")
search("(?<!a)(?<!b)c", "ac", "xc")
search(r"(a)(?<=\1)b", "ab")
search("(?<=(?=a).)b", "ab")
search("(?=)a", "a")
search("(?!)a", "a")
errors("(?<=a*)b", "(?<=a|bc)d", "(?<!a+)b", "(?<=a?)b", r"(a+)(?<=\1)b", r"(?<=(a)\1)b", "(?=a", "(?<=a", "(?<!a")

# atomic groups and possessive repetitions
search("(?>a*)a", "aaa")
search("(?>a|ab)c", "abc", "ac")
search("a*+a", "aaa")
search("a*+b", "aaab")
search("a?+a", "a", "aa")
search("a++b", "aab")
search("a{1,2}+a", "aa", "aaa")
search("(a|ab)++c", "abc", "aac")
search("(?>(a)|b)*c", "abac")
search("^(?:a|ab){2}+c", "abac")
search("^(?>(?:a|ab){2})c", "abac")

# verbose
search("a b # c\n d", "abd", "a b", flags="x")
search("(?x) a [ ] b \\ c # x", "a b c")
search("(?x: a b ) c", "ab c", "abc")
search("(?-x: a)b c", " abc", flags="x")
search(r"a\#b", "a#b", flags="x")
search("a{2 }", "a{2 }", "aa", flags="x")
search("a +", "aa", flags="x")
search("(?x) (?i) A", "a")
errors("(?x)a # b)\n(", "(?x) [a")
search("a#b", "a#b")

# escapes
search(r"\0", "\0")
search(r"\01\012", "\x01\n")
search(r"\07a", "\x07a")
search(r"\123", "S")
search(r"\x41\u0042\U00000043", "ABC")
search(r"\a\f\v\t\n\r", "\a\f\v\t\n\r")
search(r"\.\*\-\ \é\_", ".*- é_")
search(r"\08", "\x008")
search(r"\/", "/")
search(r"\ud800", "a")
errors("\\", "a\\", "(\\", r"\q", r"\y", r"\c", r"\p{L}", r"\pL", r"\h", r"\K", r"\G", r"\R", r"\X", r"\Q", r"\E", r"\e", r"\x4", r"\u12", r"\U0011000",
       r"\U00110000", r"\N", r"\N{", r"\N{}", r"\N{X", r"\400", r"\377\477", r"\8", r"\99", r"\g<1>", r"\k<n>", r"\i")

# match and fullmatch
for op in "match", "full":
    case(op, "a|ab", "ab")
    case(op, "a|ab", "xab")
    case(op, "a$", "a\n")
    case(op, "a|b", "ab")
    case(op, "(?i)A", "a")
    case(op, "a.*?", "abc")
    case(op, "(a+?)(a*)", "aaa")
    case(op, "b", "a\nb", "m")
    case(op, "^b", "a\nb", "m")
    case(op, "", "")
    case(op, r"(?<!x)\w+", "été")

# all matches, where some are empty
for op in "all", "split":
    case(op, "x*", "axbxx")
    case(op, "", "ab")
    case(op, "|a", "aab")
    case(op, "a|", "aab")
    case(op, "a*?", "aa")
    case(op, r"\b", "ab cd")
    case(op, "(?=b)", "abb")
    case(op, "(a)|b", "abc")
    case(op, r"\s*,\s*", "a , b,c")
    case(op, "(,)(;)?", "a,;b,c")
    case(op, "é*", "aéé")
    case(op, "(?<=a)", "aba")
    case(op, "$", "a\n", "m")
    case(op, "^", "aab")
    case(op, r"\Aa", "aa")
    case(op, "a", "a" * 5)
    case(op, "()", "é")

# replacements
for pattern, text, repl in (
    ("x*", "axb", "-"), ("", "ab", "-"), ("a", "aba", r"[\g<0>]"), ("(a)(b)", "ab", r"\2\1"), ("(?P<n>a)", "a", r"<\g<n>>"), ("(a)", "a", r"\g<1>0"),
    ("(a)", "a", r"\10"), ("a", "a", r"\0"), ("a", "a", r"\012"), ("a", "a", r"\07x"), ("a", "a", r"\123"), ("a", "a", r"\400"), ("a", "a", r"\1"),
    ("a", "a", r"\n\t\r\a\b\f\v\\"), ("a", "a", r"\."), ("a", "a", r"\q"), ("a", "a", r"\x41"), ("a", "a", r"\d"), ("a", "a", "\\"), ("a", "a", r"\g"),
    ("a", "a", r"\g<"), ("a", "a", r"\g<1"), ("a", "a", r"\g<>"), ("a", "a", r"\g<1>"), ("a", "a", r"\g<x>"), ("a", "a", r"\g<a b>"), ("a", "a", r"\g<-1>"),
    ("b", "a", r"\q"), ("b", "a", r"\g<x>"), ("(a)|(b)", "ab", r"[\1\2]"), ("(a)?b", "b", r"\1x"), (r"(\w)(\w)", "éà", r"\2\1"), ("a", "a", "é$1&{0}"),
    ("^", "a\nb", "# "), ("$", "a\n", "x"), ("\\d+", "a1b22", "N"), ("(?i)A", "aA", "b"), ("a", "a", r"\g<00>"), ("(a)", "a", r"\g<01>"),
    ("(.*)", "abc", r"<\1>"), (".*", "a\nb", "x"), ("a|b|", "abc", "-"), ("a", "a", r"\g<0"), ("a", "a", r"\99"), ("a", "a", r"\8"), ("a", "a\n", "\n\\q"),
):
    case("sub", pattern, text, "", repl)
case("sub", "^", "a\nb", "m", "# ")
case("sub", "(?P<k>[a-z]+)=(?P<v>.*)", "a=1", "", r"\g<v>=\g<k>")


def spans(match):
    return None if match is None else [list(r) for r in match.regs]


def answer(op, pattern, text, flags, repl):
    regex = re.compile(pattern, sum(re.RegexFlag[f.upper()] for f in flags))
    if op == "search":
        return spans(regex.search(text))
    if op == "match":
        return spans(regex.match(text))
    if op == "full":
        return spans(regex.fullmatch(text))
    if op == "all":
        return [spans(m) for m in regex.finditer(text)]
    if op == "split":
        return regex.split(text)
    return regex.sub(repl, text)


def row(op, pattern, text, flags, repl):
    out = {"op": op, "pattern": pattern, "text": text, "flags": flags}
    if repl is not None:
        out["repl"] = repl
    try:
        out["answer"] = answer(op, pattern, text, flags, repl)
    except (re.error, OverflowError, IndexError, ValueError) as e:
        out["error"] = str(e)
    return out


if __name__ == "__main__":
    print("[\n" + ",\n".join(json.dumps(row(*c)) for c in CASES) + "\n]")
