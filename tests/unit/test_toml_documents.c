/*
 * test_toml_documents.c - the TOML reader, document by document.
 * Method: documents written from the TOML v1.0.0 specification, section by section, each with the
 * values it must give or the exact place and reason of its refusal. tests/diff/toml compares with
 * tomllib.
 */
#include "support.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/toml.h"

enum { ARENA_SIZE = 1 << 20 };

struct example {
    const char *text;
    const char *expected; /* a dump that begins with '{', or "line:column: part of the message" */
};

static const struct example comments_and_keys[] = {
    {"", "{}"},
    {"\n\n  \t\n", "{}"},
    {"# only a comment", "{}"},
    {"# tab \t is fine\n#\n", "{}"},
    {"a = 1 # comment\n#a = 2", "{a=1}"},
    {"a='# no comment'", "{a=\"# no comment\"}"},
    {"# bell \a", "1:8: control character U+0007 in a comment"},
    {"# del \x7f", "1:7: control character U+007F in a comment"},
    {"a=1\n# cr \r", "2:6: control character U+000D in a comment"},
    {"# cr \r then", "1:6: control character U+000D"},
    {"a = 1\r\nb = 2\r\n", "{a=1,b=2}"},
    {"a = 1\rb = 2", "1:6: expected the end of the line, found U+000D"},
    {"\r", "1:1: expected a key, found U+000D"},
    {"key = # INVALID", "1:7: expected a value, found '#'"},
    {"first = \"Tom\" last = \"Preston\"", "1:15: expected the end of the line, found 'l'"},
    {"key =", "1:6: expected a value, found end of file"},
    {"key", "1:4: expected '=', found end of file"},
    {"key\n= 1", "1:4: expected '=', found end of line"},
    {"key =\n1", "1:6: expected a value, found end of line"},
    {"bare_key = 1\nbare-key = 2\n1234 = 3\n-=4\n_=5", "{bare_key=1,bare-key=2,1234=3,-=4,_=5}"},
    {"\"127.0.0.1\" = 1\n\"a b\" = 2\n\"\xca\x8e\" = 3", "{127.0.0.1=1,a b=2,\xca\x8e=3}"},
    {"'q\"q' = 1\n'\\n' = 2", "{q\"q=1,\\n=2}"},
    {"= 1", "1:1: expected a key, found '='"},
    {"\"\" = 1", "{=1}"},
    {"'' = 1", "{=1}"},
    {"'' = 1\n\"\" = 2", "2:1: '' is already defined as integer in line 1"},
    {"\xc3\xa9 = 1", "1:1: expected a key, found U+00E9"},
    {"a\xc3\xa9 = 1", "1:2: expected '=', found U+00E9"},
    {"\xef\xbb\xbf"
     "a = 1",
     "1:1: expected a key, found U+FEFF"},
    {"\"\"\"a\"\"\" = 1", "1:3: expected '=', found '\"'"},
    {"'''a''' = 1", "1:3: expected '=', found '''"},
    {"\"a\nb\" = 1", "1:1: the string is not closed"},
    {"a.b.c = 1", "{a={b={c=1}}}"},
    {"a . b = 1\na\t.\"c d\" = 2", "{a={b=1,c d=2}}"},
    {"3.14159 = 'pi'", "{3={14159=\"pi\"}}"},
    {".a = 1", "1:1: expected a key, found '.'"},
    {"a. = 1", "1:4: expected a key, found '='"},
    {"a..b = 1", "1:3: expected a key, found '.'"},
    {"a = 1\na = 2", "2:1: 'a' is already defined as integer in line 1"},
    {"spelling = 1\n\"spelling\" = 2", "2:1: 'spelling' is already defined as integer in line 1"},
    {"a = 1\n'a' = 2", "2:1: 'a' is already"},
    {"a = 1\n\"\\u0061\" = 2", "2:1: 'a' is already"},
    {"fruit.apple.smooth = true\nfruit.orange = 2", "{fruit={apple={smooth=true},orange=2}}"},
    {"a.b = 1\nc = 2\na.d = 3", "{a={b=1,d=3},c=2}"},
    {"a.b = 1\na.b.c = 2", "2:3: 'b' is already defined as integer in line 1"},
    {"a = 1\na.b = 2", "2:1: 'a' is already defined as integer in line 1"},
    {"a.b.c = 1\na.b = 2", "2:3: 'b' is already defined as table in line 1"},
    {"a b = 1", "1:3: expected '=', found 'b'"},
    {"a = = 1", "1:5: expected a value, found '='"},
    {"a=1 b=2", "1:5: expected the end of the line, found 'b'"},
    {"\"\\u0001key\" = 1\n\"\\u0001key\" = 2", "2:1: '?key' is already"},
    {"# c\r\n", "{}"},
    {"\"a b\" = 1\n\"a b\" = 2", "2:1: 'a b' is already"},
};

static const struct example strings[] = {
    {"a = \"I'm a string. \\\"You can quote me\\\".\"",
     "{a=\"I'm a string. \"You can quote me\".\"}"},
    {"a = \"\\b\\t\\n\\f\\r\\\"\\\\\"", "{a=\"\b\t\n\f\r\"\\\"}"},
    {"a = \"Jos\\u00E9\\U0001f600\"", "{a=\"Jos\xc3\xa9\xf0\x9f\x98\x80\"}"},
    {"a = \"\\u007f\"", "{a=\"\x7f\"}"},
    {"a = \"tab\there\"", "{a=\"tab\there\"}"},
    {"a = \"\"", "{a=\"\"}"},
    {"a = \"\\x41\"", "1:6: a backslash must be followed by one of b t n f r u U"},
    {"a = \"x\\e\"", "1:7: a backslash must"},
    {"a = \"\\/\"", "1:6: a backslash must"},
    {"a = \"\\'\"", "1:6: a backslash must"},
    {"a = \"\\ \"", "1:6: a backslash must"},
    {"a = \"\\u00e\"", "1:6: the escape needs 4 hexadecimal digits"},
    {"a = \"\\u00eg\"", "1:6: the escape needs 4 hexadecimal digits"},
    {"a = \"\\U0000004\"", "1:6: the escape needs 8 hexadecimal digits"},
    {"a = \"\\ud800\"", "1:6: U+D800 is not a character"},
    {"a = \"\\udfff\"", "1:6: U+DFFF is not a character"},
    {"a = \"\\ud7ff\\ue000\"", "{a=\"\xed\x9f\xbf\xee\x80\x80\"}"},
    {"a = \"\\U00110000\"", "1:6: U+110000 is not a character"},
    {"a = \"\\U0010FFFF\"", "{a=\"\xf4\x8f\xbf\xbf\"}"},
    {"a = \"x\x01\"", "1:7: control character U+0001 in a string"},
    {"a = \"x\x7f\"", "1:7: control character U+007F in a string"},
    {"a = \"\xc3\xa9\xc3\xa9\x1f\"", "1:8: control character U+001F in a string"},
    {"a = \"x\ry\"", "1:7: control character U+000D in a string"},
    {"a = \"open", "1:5: the string is not closed"},
    {"a = \"open\nb = \"x\"", "1:5: the string is not closed"},
    {"a = \"open\\\"", "1:5: the string is not closed"},
    {"a = \"open\\", "1:5: the string is not closed"},
    {"a = \"open\\\nx\"", "1:10: a backslash must"},
    {"a = \"\"\"\nRoses\nViolets\"\"\"", "{a=\"Roses\nViolets\"}"},
    {"a = \"\"\"\r\nRoses\r\nViolets\"\"\"", "{a=\"Roses\nViolets\"}"},
    {"a = \"\"\"\n\nx\"\"\"", "{a=\"\nx\"}"},
    {"a = \"\"\"The quick \\\n\n\n   brown \\  \n  fox.\"\"\"", "{a=\"The quick brown fox.\"}"},
    {"a = \"\"\"\\\r\n  x \\\r\n  y\"\"\"", "{a=\"x y\"}"},
    {"a = \"\"\"\\\n       \"\"\"", "{a=\"\"}"},
    {"a = \"\"\"x \\ y\"\"\"", "1:10: a backslash before a space must end the line"},
    {"a = \"\"\"x\n  \\ \"\"\"", "2:3: a backslash before a space must end the line"},
    {"a = \"\"\"x\\\r y\"\"\"", "1:9: a backslash before a space must"},
    {"a = \"\"\"Here are two: \"\". Simple.\"\"\"", "{a=\"Here are two: \"\". Simple.\"}"},
    {"a = \"\"\"three: \"\"\\\".\"\"\"", "{a=\"three: \"\"\".\"}"},
    {"a = \"\"\"\"one\"\"\"\"", "{a=\"\"one\"\"}"},
    {"a = \"\"\"\"\"two\"\"\"\"\"", "{a=\"\"\"two\"\"\"}"},
    {"a = \"\"\"six\"\"\"\"\"\"", "1:16: expected the end of the line, found '\"'"},
    {"a = \"\"\"\"\"\"", "{a=\"\"}"},
    {"a = \"\"\"\"\"\"\"\"", "{a=\"\"\"\"}"},
    {"a = \"\"\"x\n\x02\"\"\"", "2:1: control character U+0002 in a string"},
    {"a = \"\"\"x\ry\"\"\"", "1:9: control character U+000D in a string"},
    {"a = \"\"\"open\"\"", "1:5: the string is not closed"},
    {"\n\na = \"\"\"open\n\n", "3:5: the string is not closed"},
    {"a = \"\"\"x\n\\q\"\"\"", "2:1: a backslash must"},
    {"a = \"\"\"x\ny\"\"\" b", "2:6: expected the end of the line, found 'b'"},
    {"a = 'C:\\Users\\n'", "{a=\"C:\\Users\\n\"}"},
    {"a = '\\'", "{a=\"\\\"}"},
    {"a = 'it''s'", "1:9: expected the end of the line, found '''"},
    {"a = 'open", "1:5: the string is not closed"},
    {"a = 'x\ny'", "1:5: the string is not closed"},
    {"a = 'x\x1b'", "1:7: control character U+001B in a string"},
    {"a = '''\nI [dw]on't \\ need\\n\n'''", "{a=\"I [dw]on't \\ need\\n\n\"}"},
    {"a = ''''That,' she said, 'is it.''''", "{a=\"'That,' she said, 'is it.'\"}"},
    {"a = '''''''", "{a=\"'\"}"},
    {"a = ''''''''''", "1:13: expected the end of the line"},
    {"a = '''x\r\ny'''", "{a=\"x\ny\"}"},
    {"a = '''open''", "1:5: the string is not closed"},
    {"a = '''x\x7f'''", "1:9: control character U+007F in a string"},
    {"a = \"\"\"x\" ", "1:5: the string is not closed"},
    {"a = \"\"\"", "1:5: the string is not closed"},
    {"a = \"\\uabcd\\uABCD\\uefef\\uEFEF\"",
     "{a=\"\xea\xaf\x8d\xea\xaf\x8d\xee\xbf\xaf\xee\xbf\xaf\"}"},
};

static const struct example scalars[] = {
    {"a = +99\nb = 42\nc = 0\nd = -17", "{a=99,b=42,c=0,d=-17}"},
    {"a = 1_000\nb = 5_349_221\nc = 1_2_3_4_5", "{a=1000,b=5349221,c=12345}"},
    {"a = -0\nb = +0", "{a=0,b=0}"},
    {"a = 0xDEADBEEF\nb = 0xdead_beef\nc = 0o01234567\nd = 0b1101_0110",
     "{a=3735928559,b=3735928559,c=342391,d=214}"},
    {"a = 9223372036854775807\nb = -9223372036854775808",
     "{a=9223372036854775807,b=-9223372036854775808}"},
    {"a = 9223372036854775808", "1:5: the integer does not fit 64 bits"},
    {"a = -9223372036854775809", "1:5: the integer does not fit 64 bits"},
    {"a = 0x7fffffffffffffff", "{a=9223372036854775807}"},
    {"a = 0x8000000000000000", "1:5: the integer does not fit 64 bits"},
    {"a = 99999999999999999999999999", "1:5: the integer does not fit 64 bits"},
    {"a = 0x0000000000000000000000001", "{a=1}"},
    {"a = 01", "1:5: '01' is not a value"},
    {"a = -01", "1:5: '-01' is not a value"},
    {"a = 0_1", "1:5: '0_1' is not a value"},
    {"a = 1_", "1:5: '1_' is not a value"},
    {"a = _1", "1:5: '_1' is not a value"},
    {"a = 1__2", "1:5: '1__2' is not a value"},
    {"a = 0x", "1:5: '0x' is not a value"},
    {"a = 0x_1", "1:5: '0x_1' is not a value"},
    {"a = 0x1_", "1:5: '0x1_' is not a value"},
    {"a = 0X1", "1:5: '0X1' is not a value"},
    {"a = +0x1", "1:5: '+0x1' is not a value"},
    {"a = 0b2", "1:5: '0b2' is not a value"},
    {"a = 0o8", "1:5: '0o8' is not a value"},
    {"a = 0xg", "1:5: '0xg' is not a value"},
    {"a = +", "1:5: '+' is not a value"},
    {"a = --1", "1:5: '--1' is not a value"},
    {"a = true\nb = false", "{a=true,b=false}"},
    {"a = True", "1:5: 'True' is not a value: strings need quotes"},
    {"a = yes", "1:5: 'yes' is not a value: strings need quotes"},
    {"a = truer", "1:5: 'truer' is not a value"},
    {"a = 1.5", "1:5: floats are not used in ron configuration: write an integer, or a string"},
    {"a =  -0.01", "1:6: floats are not used"},
    {"a = 5e+22", "1:5: floats are not used"},
    {"a = 1E06", "1:5: floats are not used"},
    {"a = 224_617.445_991", "1:5: floats are not used"},
    {"a = inf", "1:5: floats are not used"},
    {"a = -nan", "1:5: floats are not used"},
    {"a = [1, 2.0]", "1:9: floats are not used"},
    {"a = .7", "1:5: '.7' is not a value"},
    {"a = 1979-05-27T07:32:00Z", "1:5: dates are not used in ron configuration: write a string"},
    {"a = 1979-05-27 07:32:00", "1:5: dates are not used"},
    {"a = 1979-05-27", "1:5: dates are not used"},
    {"a = 07:32:00", "1:5: dates are not used"},
    {"a = a-name-that-is-much-longer-than-a-message-should-repeat-in-full",
     "1:5: 'a-name-that-is-much-longer-than-a-message-...' is not a value"},
    {"a = \xe6\xb0\xb4", "1:5: expected a value, found U+6C34"},
    {"a = 1\x01", "1:6: expected the end of the line, found U+0001"},
    {"a = 0x1\nb = 0o7\nc = 0b1", "{a=1,b=7,c=1}"},
    {"a = x234-1", "1:5: 'x234-1' is not a value"},
    {"a = +1.5", "1:5: floats are not used"},
    {"a = 12345-1", "1:5: '12345-1' is not a value"},
    {"a = 123:00", "1:5: '123:00' is not a value"},
    {"a = 12-5", "1:5: '12-5' is not a value"},
    {"a = 1234:5", "1:5: '1234:5' is not a value"},
    {"a = AZ09az", "1:5: 'AZ09az' is not a value"},
    {"a = \xe0\xa0\x80", "1:5: expected a value, found U+0800"},
    {"a = \xf0\x90\x80\x80", "1:5: expected a value, found U+10000"},
};

static const struct example nested[] = {
    {"a = []\nb = [ ]\nc = [\n]", "{a=[],b=[],c=[]}"},
    {"a = [1, 2, 3]\nb = ['x', \"y\", '''z''']", "{a=[1,2,3],b=[\"x\",\"y\",\"z\"]}"},
    {"a = [[1, 2], ['a', []]]", "{a=[[1,2],[\"a\",[]]]}"},
    {"a = [1, 'x', true, {b = 2}]", "{a=[1,\"x\",true,{b=2}]}"},
    {"a = [\n  1, # one\n  2, # two\n  # three\n]", "{a=[1,2]}"},
    {"a = [1\n,\n2\n,]", "{a=[1,2]}"},
    {"a = [1,,2]", "1:8: expected a value, found ','"},
    {"a = [,]", "1:6: expected a value, found ','"},
    {"a = [1 2]", "1:8: expected ',' or ']', found '2'"},
    {"a = [1, 2", "1:10: the array opened in line 1 is not closed"},
    {"a = [\n[1,\n", "3:1: the array opened in line 2 is not closed"},
    {"a = [1}", "1:7: expected ',' or ']', found '}'"},
    {"a = [1] x", "1:9: expected the end of the line, found 'x'"},
    {"a = ]", "1:5: expected a value, found ']'"},
    {"a = [b = 1]", "1:6: 'b' is not a value"},
    {"a = {}\nb = { }", "{a={},b={}}"},
    {"a = { first = 'Tom', last = \"P\" }", "{a={first=\"Tom\",last=\"P\"}}"},
    {"a = {b.c = 1, b.d = 2, 'e' = {f = []}}", "{a={b={c=1,d=2},e={f=[]}}}"},
    {"a = {b = [1,\n2], c = '''x\ny'''}", "{a={b=[1,2],c=\"x\ny\"}}"},
    {"a = {b = 1,}", "1:12: expected a key after the comma, found '}'"},
    {"a = {,}", "1:6: expected a key, found ','"},
    {"a = {b = 1,, c = 2}", "1:12: expected a key, found ','"},
    {"a = {b = 1\n}", "1:11: expected ',' or '}' on the same line, found end of line"},
    {"a = {\nb = 1}", "1:6: expected a key, found end of line"},
    {"a = {b = 1 # c\n}", "1:12: expected ',' or '}' on the same line, found '#'"},
    {"a = {b = 1 c = 2}", "1:12: expected ',' or '}' on the same line, found 'c'"},
    {"a = {b = 1", "1:11: the table opened in line 1 is not closed"},
    {"a = {b = 1]", "1:11: expected ',' or '}'"},
    {"a = {b}", "1:7: expected '=', found '}'"},
    {"a = {b = 1, b = 2}", "1:13: 'b' is already defined as integer in line 1"},
    {"a = {b = 1, b.c = 2}", "1:13: 'b' is already defined as integer in line 1"},
    {"a = {b = {c = 1}, b.d = 2}", "1:19: 'b' is already defined as table in line 1"},
    {"a = {b.c = 1, b = {}}", "1:15: 'b' is already defined as table in line 1"},
    {"a = {b.c = 1, b.c.d = 2}", "1:17: 'c' is already"},
    {"a = {b = [{}], b.c = 1}", "1:16: 'b' is already defined as array in line 1"},
    {"a.b = {c.d = 1}\na.e = 2", "{a={b={c={d=1}},e=2}}"},
};

static const struct example tables[] = {
    {"[table]", "{table={}}"},
    {"[t1]\na = 1\n[t2]\na = 2", "{t1={a=1},t2={a=2}}"},
    {"[dog.\"tater.man\"]\ntype = 1", "{dog={tater.man={type=1}}}"},
    {"[a.b.c]\n[ d.e.f ]\n[ g .  h  . i ]\n[ j . \"k\" . 'l' ]",
     "{a={b={c={}}},d={e={f={}}},g={h={i={}}},j={k={l={}}}}"},
    {"[x.y.z.w]\n[x]\na = 1", "{x={y={z={w={}}},a=1}}"},
    {"[x.y]\n[x]\n[x.z]", "{x={y={},z={}}}"},
    {"[]", "1:2: expected a key, found ']'"},
    {"[a", "1:3: expected ']', found end of file"},
    {"[a\n]", "1:3: expected ']', found end of line"},
    {"[a.]", "1:4: expected a key, found ']'"},
    {"[a] b = 1", "1:5: expected the end of the line, found 'b'"},
    {"[a]]", "1:4: expected the end of the line, found ']'"},
    {"[a b]", "1:4: expected ']', found 'b'"},
    {"[ [a]]", "1:3: expected a key, found '['"},
    {"[fruit]\n[fruit]", "2:2: 'fruit' is already defined as table in line 1"},
    {"[fruit]\napple = 1\n[fruit.apple]", "3:8: 'apple' is already defined as integer in line 2"},
    {"[fruit]\napple = 1\n[fruit.apple.x]", "3:8: 'apple' is already defined as integer in line 2"},
    {"[a]\nb = {}\n[a.b.c]", "3:4: 'b' is already defined as table in line 2"},
    {"a = {}\n[a.b]", "2:2: 'a' is already defined as table in line 1"},
    {"a = []\n[a.b]", "2:2: 'a' is already defined as array in line 1"},
    {"a = [{}]\n[a.b]", "2:2: 'a' is already defined as array in line 1"},
    {"[fruit]\napple.color = 1\n[fruit.apple]",
     "3:8: 'apple' is already defined as table in line 2"},
    {"[fruit]\napple.taste.sweet = true\n[fruit.apple.taste]", "3:14: 'taste' is already"},
    {"[fruit]\napple.color = 1\napple.taste.sweet = true\n[fruit.apple.texture]\nsmooth = true",
     "{fruit={apple={color=1,taste={sweet=true},texture={smooth=true}}}}"},
    {"[a.b.c]\nz = 9\n[a]\nb.c.t = 1", "4:3: 'c' is already defined as table in line 1"},
    {"[a.b]\n[a]\nb.c = 1", "3:1: 'b' is already defined as table in line 1"},
    {"[a.b.c]\n[a]\nb.d = 1", "{a={b={c={},d=1}}}"},
    {"[a.b.c]\n[a]\nb.d = 1\n[a.b]", "4:4: 'b' is already defined"},
    {"[a]\nb.c = 1\n[x]\n[a.b.d]\n[a.b.d.e]\n", "{a={b={c=1,d={e={}}}},x={}}"},
    {"[a.b]\n[a]\n[a]", "3:2: 'a' is already defined as table in line 2"},
    {"[[products]]\nname = 'Hammer'\n[[products]]\n[[products]]\nname = 'Nail'",
     "{products=[{name=\"Hammer\"},{},{name=\"Nail\"}]}"},
    {"[[f]]\nn = 1\n[f.p]\nc = 2\n[[f.v]]\nn = 3\n[[f.v]]\nn = 4\n[[f]]\nn = 5\n[[f.v]]\nn = 6",
     "{f=[{n=1,p={c=2},v=[{n=3},{n=4}]},{n=5,v=[{n=6}]}]}"},
    {"[fruit.physical]\n[[fruit]]", "2:3: 'fruit' is already defined as table in line 1"},
    {"fruits = []\n[[fruits]]", "2:3: 'fruits' is already defined as array in line 1"},
    {"[[fruits]]\n[[fruits.v]]\n[fruits.v]", "3:9: 'v' is already defined as array in line 2"},
    {"[[fruits]]\n[fruits.p]\n[[fruits.p]]", "3:10: 'p' is already defined as table in line 2"},
    {"[[a]]\n[a]", "2:2: 'a' is already defined as array in line 1"},
    {"[a]\n[[a]]", "2:3: 'a' is already defined as table in line 1"},
    {"[[a]]\n[a.b]\n[[a]]\n[a.b]", "{a=[{b={}},{b={}}]}"},
    {"[[a]]\n[a.b]\n[a.b]", "3:4: 'b' is already defined as table in line 2"},
    {"[[a.b]]\n[a]\nb.c = 1", "3:1: 'b' is already defined as array in line 1"},
    {"[[a.b]]\n[a]\nc = 1", "{a={b=[{}],c=1}}"},
    {"[[a]]\nb.c = 1\n[[a]]\nb.c = 2\nb.d = 3", "{a=[{b={c=1}},{b={c=2,d=3}}]}"},
    {"[[ a . b ]]", "{a={b=[{}]}}"},
    {"[[a]", "1:5: expected ']]', found end of file"},
    {"[[a] ]", "1:5: expected ']]', found ' '"},
    {"[[]]", "1:3: expected a key, found ']'"},
    {"a = 1\n[[a]]", "2:3: 'a' is already defined as integer in line 1"},
    {"a.b = 1\n[a]", "2:2: 'a' is already defined as table in line 1"},
    {"a.b = 1\n[a.c]", "{a={b=1,c={}}}"},
    {"a.b = 1\n[[a.c]]\n[a.c.d]", "{a={b=1,c=[{d={}}]}}"},
    {"[a]\nb = 1\n  [a.c] # indented\n  d = 2", "{a={b=1,c={d=2}}}"},
};

/* Compact notation; strings raw between quotes. Depth is bounded, so recursion is. */
static void dump(struct ron_buf *out, const struct ron_toml_node *node)
{
    switch ((enum ron_toml_kind)node->kind) {
    case RON_TOML_STRING:
        ron_buf_put_text(out, "\"");
        ron_buf_put(out, node->string.data, node->string.size);
        ron_buf_put_text(out, "\"");
        break;
    case RON_TOML_INTEGER:
        ron_buf_put_format(out, "%" PRId64, node->integer);
        break;
    case RON_TOML_BOOLEAN:
        ron_buf_put_text(out, node->boolean ? "true" : "false");
        break;
    case RON_TOML_ARRAY:
    case RON_TOML_TABLE:
        ron_buf_put_text(out, node->kind == RON_TOML_ARRAY ? "[" : "{");
        for (RON_TOML_EACH(child, node)) {
            if (child != node->first_child)
                ron_buf_put_text(out, ",");
            ron_buf_put(out, child->key.data, child->key.size);
            if (node->kind == RON_TOML_TABLE)
                ron_buf_put_text(out, "=");
            dump(out, child);
        }
        ron_buf_put_text(out, node->kind == RON_TOML_ARRAY ? "]" : "}");
        break;
    case RON_TOML__MAX:
        fail();
    }
}

/* Parse a copy that ends where the text does, so that sanitizers see reading beyond. */
static void check_example(const struct example *example)
{
    const struct ron_toml_node *root = NULL;
    struct ron_errinfo info = {0};
    size_t size = strlen(example->text);
    uint8_t *copy = ron_mem_alloc(size > 0 ? size : 1);
    char expected[512];
    struct ron_arena arena;
    struct ron_buf out;
    enum ron_err err;

    assert_non_null(copy);
    memcpy(copy, example->text, size);
    assert_ok(ron_arena_init(&arena, ARENA_SIZE, NULL));
    ron_buf_init(&out, 4096);
    err = ron_toml_parse(ron_slice_of(copy, size), "t.toml", &arena, &root, &info);
    if (example->expected[0] == '{') {
        if (err != RON_ERR_OK)
            fail_msg("refused: %s\n%s", info.message, example->text);
        dump(&out, root);
        ron_buf_put_byte(&out, '\0');
        if (strcmp((const char *)out.data, example->expected) != 0)
            fail_msg("got %s, expected %s", (const char *)out.data, example->expected);
    } else {
        if (err == RON_ERR_OK)
            fail_msg("accepted: %s", example->text);
        assert_true(snprintf(expected, sizeof(expected), "t.toml:%s", example->expected) > 0);
        if (err != RON_ERR_MALFORMED || strncmp(info.message, expected, strlen(expected)) != 0)
            fail_msg("got \"%s\", expected \"%s\"", info.message, expected);
        assert_null(root);
        assert_int_equal(arena.used_size, 0);
    }
    ron_buf_fini(&out);
    ron_arena_fini(&arena);
    ron_mem_free(copy);
}

#define CHECK_ALL(examples)                                \
    for (size_t i = 0; i < RON_ARRAY_COUNT(examples); i++) \
    check_example(&(examples)[i])

static void comments_and_keys_as_specified(void **state)
{
    (void)state;
    CHECK_ALL(comments_and_keys);
}

static void strings_as_specified(void **state)
{
    (void)state;
    CHECK_ALL(strings);
}

static void scalars_as_specified(void **state)
{
    (void)state;
    CHECK_ALL(scalars);
}

static void arrays_and_inline_tables_as_specified(void **state)
{
    (void)state;
    CHECK_ALL(nested);
}

static void tables_as_specified(void **state)
{
    (void)state;
    CHECK_ALL(tables);
}

static void bytes_that_are_not_text(void **state)
{
    static const struct {
        struct ron_slice text;
        const char *error;
    } examples[] = {
        {{(const uint8_t *)"a = \"\xff\"", 7}, "t.toml:1:6: byte 0xff is not UTF-8"},
        {{(const uint8_t *)"a = 1\r\n# \xc3\xa9 \xed\xa0\x80", 15},
         "t.toml:2:5: byte 0xed is not UTF-8"},
        {{(const uint8_t *)"# \xe6\xb0", 4}, "t.toml:1:3: byte 0xe6 is not UTF-8"},
        {{(const uint8_t *)"a = \"x\0\"", 8}, "t.toml:1:7: control character U+0000 in a string"},
        {{(const uint8_t *)"a = 1\0", 6}, "t.toml:1:6: expected the end of the line, found U+0000"},
        {{(const uint8_t *)"\0", 1}, "t.toml:1:1: expected a key, found U+0000"},
        {{(const uint8_t *)"# \0", 3}, "t.toml:1:3: control character U+0000 in a comment"},
        {{(const uint8_t *)"a = [\0", 6}, "t.toml:1:6: expected a value, found U+0000"},
        {{(const uint8_t *)"a = \"\\\0\"", 8}, "t.toml:1:6: a backslash must be followed"},
    };
    struct ron_arena arena;

    (void)state;
    assert_ok(ron_arena_init(&arena, ARENA_SIZE, NULL));
    for (size_t i = 0; i < RON_ARRAY_COUNT(examples); i++) {
        const struct ron_toml_node *root = NULL;
        struct ron_errinfo info = {0};

        support_assert_error(ron_toml_parse(examples[i].text, "t.toml", &arena, &root, &info),
                             &info, RON_ERR_MALFORMED, examples[i].error);
    }
    ron_arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comments_and_keys_as_specified),
        cmocka_unit_test(strings_as_specified),
        cmocka_unit_test(scalars_as_specified),
        cmocka_unit_test(arrays_and_inline_tables_as_specified),
        cmocka_unit_test(tables_as_specified),
        cmocka_unit_test(bytes_that_are_not_text),
    };
    return cmocka_run_group_tests_name("toml_documents", tests, NULL, NULL);
}
