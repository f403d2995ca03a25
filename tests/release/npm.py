"""The npm packages: `npm.py platform TREE CPU VERSION OUT` packs the program for one processor, `npm.py launcher TREE VERSION OUT` the
command `nuncio`, which uses one of the platform packages in OUT. Both print the file."""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
KIND, TREE, VERSION, OUT = sys.argv[1], Path(sys.argv[2]), sys.argv[-2], Path(sys.argv[-1]).resolve()
REPOSITORY = {"type": "git", "url": "git+https://github.com/nuncio/nuncio.git"}
DESCRIPTION = "Coding agent for editors, scripts and other programs"


def pack(directory, manifest):
    (directory / "package.json").write_text(json.dumps(manifest, indent=2) + "\n")
    shutil.copy(TREE / "share/doc/nuncio/LICENSE", directory)
    command = ["npm", "pack", "--ignore-scripts", "--silent", "--pack-destination", str(OUT)]
    print(subprocess.run(command, cwd=directory, check=True, stdout=subprocess.PIPE, text=True).stdout.strip())


def platform(directory, cpu):
    (directory / "bin").mkdir(parents=True)
    shutil.copy(TREE / "bin/nuncio", directory / "bin")
    shutil.copy(TREE / "share/doc/nuncio/THIRD-PARTY.txt", directory)
    name = f"@nuncio/linux-{cpu}"
    (directory / "README.md").write_text(f"The program of [nuncio](https://www.npmjs.com/package/nuncio) for Linux, {cpu}, glibc.\n")
    pack(directory, {
        "name": name, "version": VERSION, "description": f"{DESCRIPTION} (Linux, {cpu})", "license": "Apache-2.0",
        "repository": REPOSITORY, "os": ["linux"], "cpu": [cpu], "libc": ["glibc"], "files": ["bin", "THIRD-PARTY.txt"],
        "preferUnplugged": True,
    })


def launcher(directory):
    (directory / "bin").mkdir(parents=True)
    shutil.copy(HERE / "launcher.js", directory / "bin/nuncio.js")
    (directory / "bin/nuncio.js").chmod(0o755)
    shutil.copy(TREE / "share/doc/nuncio/README.md", directory)
    shutil.copytree(TREE / "share/man/man1", directory / "man")
    completions = directory / "completions"
    completions.mkdir()
    for path in ["bash-completion/completions/nuncio", "zsh/site-functions/_nuncio", "fish/vendor_completions.d/nuncio.fish", "doc/nuncio/nuncio.ps1"]:
        name = "nuncio.bash" if path.startswith("bash") else Path(path).name
        shutil.copy(TREE / "share" / path, completions / name)
    names = sorted(path.name.removeprefix("nuncio-").removesuffix(f"-{VERSION}.tgz") for path in OUT.glob(f"nuncio-linux-*-{VERSION}.tgz"))
    assert names, f"{OUT} has no package of a platform"
    pack(directory, {
        "name": "nuncio", "version": VERSION, "description": DESCRIPTION, "license": "Apache-2.0", "repository": REPOSITORY,
        "keywords": ["acp", "agent-client-protocol", "coding-agent", "cli"],
        "bin": {"nuncio": "bin/nuncio.js"}, "man": sorted(f"man/{path.name}" for path in (directory / "man").iterdir()),
        "files": ["bin", "man", "completions"], "engines": {"node": ">=18"},
        "optionalDependencies": {f"@nuncio/{name}": VERSION for name in names},
    })


with tempfile.TemporaryDirectory() as scratch:
    if KIND == "launcher":
        launcher(Path(scratch))
    else:
        platform(Path(scratch), sys.argv[3])
