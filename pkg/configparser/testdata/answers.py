"""Prints what Python's configparser makes of the texts below: python3 answers.py > answers.json

An answer is each section with its options, those of DEFAULT before its own, or the name of the error.
"""

import configparser
import json

TEXTS = [
    "", "\n", "# c\n", "[a]", "[a]\n", "[a]\nx=1", "[a]\nx = 1\n", "[a]\nx: 1", "[a]\nx :1", "[a]\nx=1=2:3", "[a]\nx:1=2", "[a]\nx = a:b", "[a]\nx.y/z - w = 1",
    # options and values
    "[a]\nx=", "[a]\nx =  \n", "[a]\n=1", "[a]\n:1", "[a]\nx", "[a]\nx y", "[a]\nX=1\n", "[a]\nx=1\nX=2", "[a]\nx=1\nx=2", "[a]\nÄ=1\nä=2", "[a]\nx='1'", "[a]\nx = \"a b\" ",
    "[a]\nx=%(y)s %%\ny=50%", "[a]\nx=1\ny\nz=2", "[a]\nx y=1", "[a]\nx\ty = 1", "[a]\nx=\u00a01\u00a0", "[a]\n\u00a0x=1", "[a]\nx=é", "[a]\nx==1", "[a]\nx=\n y", "[a]\n[]=1", "[a]\n[=1",
    # sections
    "x=1", "x=1\n[a]", "  x=1", "[]", "[]\nx=1", "[ a ]\nx=1", "[a b]\nx=1", "[a]b\nx=1", "[a] # c\nx=1", "[a]b]\nx=1", "[[a]]\nx=1", "[a\nx=1", "[a]\n[b]\nx=1", "[a]\nx=1\n[a]\ny=1",
    "[a]\nx=1\n[b]\nx=2", "[A]\nx=1\n[a]\nx=2", "  [a]\nx=1", "[a]\nx=1\n  [b]", "[a]\n  x=1\n[b]\n  y=2", "[a]\n  x=1\n  y=2", "[a]\n  x=1\n y=2", "[a]\n x=1\n  y=2",
    "[DEFAULT]\nx=1", "[DEFAULT]\nx=1\n[a]", "[DEFAULT]\nx=1\n[a]\nx=2\ny=3", "[a]\ny=3\n[DEFAULT]\nx=1", "[DEFAULT]\nx=1\n[DEFAULT]\ny=2\n[a]", "[DEFAULT]\nx=1\n[DEFAULT]\nx=2",
    "[default]\nx=1\n[a]", "[ DEFAULT ]\nx=1\n[a]", "[a][b]\nx=1",
    # values that go on
    "[a]\nx=1\n 2", "[a]\nx=1\n\t2\n\t3", "[a]\nx=1\n\n 2", "[a]\nx=1\n\n\n 2\n\n[b]\ny=1", "[a]\nx=1\n # c\n 2", "[a]\nx=1\n# c\n 2", "[a]\nx=1\n ; c\n\n 2\n", "[a]\nx=1\n  y=2",
    "[a]\nx=1\n  y\nz=1", "[a]\nx=1\n  [b]\n", "[a]\nx=1\n 2\ny=3", "[a]\n  x=1\n  2", "[a]\n  x=1\n   2\n  y=3", "[a]\nx=1\n   \n 2", "[a]\nx =\n  1\n  2", "[a]\nx=1\n\n", "[a]\n x=1",
    "[a]\n 1", "[a]\nx=1\ny=2\n  3", "[a]\nx=1\n 2 ; c\n 3 # c", "[a]\n\tx=1\n        y=2",
    # comments
    "[a]\nx=1 ; c", "[a]\nx=1;c", "[a]\nx=1 # c", "[a]\nx=1#c", "[a]\n;x=1\n#y=1", "[a]\n  ; c\nx=1", "[a]\nx=;1", "[a]\nx= ;1", "[a]\nx=a;b ;c;d", "[a]\nx=1\t; c", "[a] ; c\nx=1", ";\n#\n[a]",
    "[a]\nx;y=1", "[a]\nx ;y=1", "; c\n x=1", "[a]\nx=1\n;c\n  ;d\n  2", "[a]\nx=a # b ; c", "[a]\nx=http://h:80/#p", "[a]\nx=1 ;\n 2", "[a]\nrem x=1", "[a]\n// x=1",
    # line ends
    "[a]\r\nx=1\r\n", "[a]\r\nx=1\r\n 2\r\n", "[a]\nx=1\x0c", "[a]\nx=1\x0b2", "\ufeff[a]\nx=1", "[a]\nx=1\n\x00", "[a]\nx=a\\\nb=2", "[a]\nx=a\\\n b",
]

RULES = [{}, {"inline_comment_prefixes": (";",)}, {"allow_no_value": True}, {"exact": True}]


def read(text, exact=False, **rules):
    parser = configparser.ConfigParser(interpolation=None, **rules)
    if exact:
        parser.optionxform = str
    try:
        parser.read_string(text)
    except configparser.Error as e:
        return type(e).__name__
    except AttributeError:  # before Python 3.13, for what is a ParsingError there
        return "ParsingError"
    return [[s, [list(o) for o in parser.items(s)]] for s in parser.sections()]


def rows():
    for text in TEXTS:
        plain = read(text)
        yield {"text": text, "rules": {}, "answer": plain}
        for rules in RULES[1:]:
            answer = read(text, **rules)
            if answer != plain:
                yield {"text": text, "rules": rules, "answer": answer}


if __name__ == "__main__":
    print("[\n" + ",\n".join(map(json.dumps, rows())) + "\n]")
