"""Prints what Python's ast.literal_eval answers to the texts below: python3 literals.py > literals.json

An answer is the repr of the value, with lists for tuples and sets.
"""

import ast
import json
import warnings

warnings.simplefilter("ignore")

TEXTS = r"""
1
-1
+1
- 1
-(1)
--1
-True
1+1
1 + 2j
2j
0
00
0_0
01
0644
09
1_000
1__0
1_
_1
0x1F
0X_ff
0x
0xg
0o17
0b101
0b2
-0x10
0777.5
1.
.5
.
1.5
-1.5e3
1e5
1E-2
1e
1e+
1_0.0_1e1_0
1._5
1.5.2
1e400
-0.0
9223372036854775807
-9223372036854775808
1a
1 a
١
True
False
None
true
false
null
True1
None.x
NaN
inf
x
...
''
""
'a'
"a"
'it''s'
'a' "b"
'a'b
'a
'a"
a'
'\''
"\""
"'"
'\n\t\r\a\b\f\v\\'
'\/'
'\q'
'\d\w'
'\0'
'\101'
'\1012'
'\777'
'\8'
'\x41'
'\x4'
'\xg1'
'\u00e9'
'\u00e'
'\U0001F600'
'\U00110000'
'é日本😀'
'\
'
r'\n'
R"a\"b"
r'\'
u'é'
U'x'
ur'x'
f'x'
'''a'b'''
'''a''
[]
[ ]
[1]
[1,]
[1, 2]
[1 2]
[,]
[1,,2]
[1
1]
[[1], [2, [3]]]
[1, 'a', None, True, 2.5]
[1, # comment
["a", 'b' 'c']
[x]
[*[1]]
()
(1)
(1,)
(1, 2)
(1, 2
((1))
(,)
1,
1, 2
1, 2,
,
1,,
'a', 'b'
{}
{ }
{1}
{1, 2, 1}
{1, 1.0, True}
{'a'}
{'a': 1}
{'a': 1,}
{'a': 1, 'b': {'c': [2]}}
{'a': 1, 'a': 2}
{1: 'a', 1.0: 'b'}
{'a' 1}
{'a': }
{: 1}
{'a': 1 'b': 2}
{'a': 1, 'b'}
{'a', 'b': 1}
{,}
{[1]: 2}
{{}: 1}
{[1]}
{None: 1, True: 2, 2.5: 3}
{a: 1}
{**{}}
set()
set( )
set([1])
dict()
list()
1 # comment
# only a comment
'#'
[1] # x
[1] x
lookup('env', 'HOME')
__import__('os')
1 if True else 2
not True
1 < 2
'a' + 'b'
'a' % 1
'%s' % 'a'
[1][0]
'a'.upper()
lambda: 1
[i for i in (1, 2)]
10.0.0.1
10.0.0.1/24
2024-01-01
12:30
a b
node1.example.org
/etc/passwd
{{ x }}
{% x %}
$x
!x
@x
&x
1;2
""".strip("\n").split("\n")

TEXTS = [t for t in TEXTS if t not in ("'\\", "'")] + [
    "", " ", " 1", "\t1", "1 ", "1\n", "1\n\n", "\n1", "1\n2", "1\n# c\n", "1 \\\n", "[1,\n2]", "[1, # c\n 2\n]", "[\n]", "[1\r\n,2]", "{'a':\n1,\n'b' : 2\n}",
    "(1\n)", "(\n1,\n)", "['a\nb']", "'a\nb'", "'''a\nb'''", '"""a"b\n"""', "'a\\\nb'", "'a\rb'", "[1, \\\n2]", "['a'\n'b']", "'a'\n'b'", "'a' \\\n'b'",
    "1,\n", "1,\n2", "'\\", "'", "[1\x00]", "[1\x0c,2]", "[1\u00a0]", "['\t']", "[" * 100 + "]" * 100, "[" * 300 + "]" * 300, "[[", "-", "+", "- ", "-'a'", "-[1]",
    "-(1", "( 1 )", "[-1, +2, -.5]", "{-1: -2}", "{'a':1}", "[1,2,]", "[ 1 , 2 ]", "1 ,2", "{1:2,3:4}", "{1 : 2 , }",
]


def plain(v):
    if isinstance(v, (list, tuple)):
        return [plain(x) for x in v]
    if isinstance(v, (set, frozenset)):
        return sorted(plain(x) for x in v)
    if isinstance(v, dict):
        return {k: plain(x) for k, x in v.items()}
    return v


def row(text):
    try:
        return {"text": text, "value": repr(plain(ast.literal_eval(text)))}
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return {"text": text, "error": True}


if __name__ == "__main__":
    print("[\n" + ",\n".join(json.dumps(row(t)) for t in TEXTS) + "\n]")
