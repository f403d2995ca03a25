"""Checks the width of texts in cells."""
import os
import subprocess
import sys

sys.path.insert(0, os.getcwd())
from table import shorten, table

ACUTE, DOT = "\u0301", "\u0323"
E = "e" + ACUTE
assert table([["a", "bb"], ["ccc", "d"]]) == ["a   | bb", "ccc | d"]
assert table([["山田", "x"], ["abc", "y"]]) == ["山田 | x", "abc  | y"]
assert table([["Jos" + E, "x"], ["ab", "y"]]) == ["Jos" + E + " | x", "ab   | y"], "decomposed"
assert table([["ＡＢ", "x"], ["é", "y"], ["ｱｲｳ", "z"]]) == ["ＡＢ | x", "é    | y", "ｱｲｳ  | z"], "fullwidth, halfwidth and composed"
assert table([["e" + ACUTE + DOT, "x"], ["ab", "y"]]) == ["e" + ACUTE + DOT + "  | x", "ab | y"]
for text, limit, expected in (
    ("abcdef", 4, "abc…"), ("abcd", 4, "abcd"), ("山田太郎", 8, "山田太郎"), ("山田太郎", 7, "山田太…"), ("山田太郎", 6, "山田…"),
    ("山田太郎", 5, "山田…"), ("a山b", 3, "a…"), ("a山", 3, "a山"), (E * 4, 4, E * 4), (E * 5, 4, E * 3 + "…"), ("ab" + E + "cd", 4, "ab" + E + "…"),
    ("abc" + "d" + ACUTE + DOT, 4, "abc" + "d" + ACUTE + DOT), ("x" + ACUTE + DOT + "yz", 2, "x" + ACUTE + DOT + "…"), ("ab", 1, "…"), ("山", 1, "…"), ("", 3, ""),
):
    assert shorten(text, limit) == expected, (text, limit, shorten(text, limit))
assert table([["山田太郎", "x"], ["ab", "y"]], limit=5) == ["山田… | x", "ab    | y"]
env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUTF8": "1"}
ended = subprocess.run([sys.executable, "table.py", "data/members.txt"], env=env, stdout=subprocess.PIPE, encoding="utf-8")
assert ended.stdout == (
    f"Ann         | London\nJos{E} P{E}rez  | Málaga\n山田太郎    | 東京\n한지민      | 서울\nÅsa         | Göteborg\nZoë Ｍüller | Köln\n"
), ended.stdout
git = subprocess.run(["git", "status", "--porcelain", "data"], stdout=subprocess.PIPE, text=True)
assert git.stdout == "", "the data is right"
print("all checks passed")
