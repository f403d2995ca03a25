"""Runs backup.sh on directories in a temporary directory."""
import os
import stat
import subprocess
import tarfile
import tempfile
from pathlib import Path
from shutil import which

SCRIPT = os.path.abspath("backup.sh")
top = tempfile.TemporaryDirectory()
work = Path(top.name)


def files(path):
    return sorted(str(found.relative_to(path)) for found in path.rglob("*") if found.is_file())


def backup(*arguments, stamp="20240501-000000", path="", cwd=work):
    env = {**os.environ, "PATH": path + os.environ["PATH"]}
    env.pop("STAMP", None)
    if stamp:
        env["STAMP"] = stamp
    return subprocess.run([SCRIPT, *map(str, arguments)], cwd=cwd, env=env, stdin=subprocess.DEVNULL, timeout=30).returncode


source, target = work / "my source", work / "the target"
for name in ("Annual report", "photos", "photos-old", "broken"):
    (source / name / "deep").mkdir(parents=True)
    (source / name / "deep" / "it's a file.txt").write_text(name)
(source / "plain file").write_text("not packed")
target.mkdir()
(target / "photos-notes.tar.gz").write_text("mine")
(target / "keep me.txt").write_text("mine")
for stamp in ("20230101-000000", "20230102-000000", "20240101-120000"):
    for name in ("photos", "photos-old", "Annual report"):
        (target / f"{name}-{stamp}.tar.gz").write_text(stamp)
# Stamps decide, not the times of files.
os.utime(target / "photos-20230101-000000.tar.gz", (4e9, 4e9))

before = files(work)
for wrong in ((work / "missing", target, 2), (source / "plain file", target, 2), (source, target, 0), (source, target, "x"), (source, target)):
    assert backup(*wrong) == 2, wrong
    assert files(work) == before, wrong

assert backup("my source", "the target", 3) == 0
expected = {"photos-notes.tar.gz", "keep me.txt", "broken-20240501-000000.tar.gz"}
for name in ("photos", "photos-old", "Annual report"):
    expected |= {f"{name}-{stamp}.tar.gz" for stamp in ("20230102-000000", "20240101-120000", "20240501-000000")}
assert set(files(target)) == expected, files(target)
assert (target / "photos-notes.tar.gz").read_text() == "mine"
for name in ("photos", "Annual report"):
    with tarfile.open(target / f"{name}-20240501-000000.tar.gz") as archive:
        members = [member for member in archive.getmembers() if member.isfile()]
        assert [member.name for member in members] == [f"{name}/deep/it's a file.txt"], members
        assert archive.extractfile(members[0]).read().decode() == name

# A tar that fails for one directory after it wrote a part of the archive.
(work / "bin").mkdir()
tar = work / "bin/tar"
tar.write_text(f"""#!/bin/bash
for argument in "$@"; do
    case $argument in
        *broken | *broken/) broken=1 ;;
    esac
done
{which("tar")} "$@" || exit
if [ -n "$broken" ]; then
    exit 2
fi
""")
tar.chmod(tar.stat().st_mode | stat.S_IXUSR)
new = work / "new" / "place"
assert backup(source, new, 1, stamp="20240601-000000", path=f"{work}/bin:") == 1
assert files(new) == [f"{name}-20240601-000000.tar.gz" for name in ("Annual report", "photos", "photos-old")], files(new)
(source / "broken" / "deep" / "it's a file.txt").unlink()
assert backup("../my source", "../new/place", 1, stamp="20240602-000000", cwd=source) == 0
assert len(files(new)) == 4 and all("20240602" in name for name in files(new)), files(new)
assert backup(source, work / "now", 5, stamp=None) == 0 and len(files(work / "now")) == 4
assert files(source) == ["Annual report/deep/it's a file.txt", "photos-old/deep/it's a file.txt", "photos/deep/it's a file.txt", "plain file"]
print("all checks passed")
