//! Options that write files or run programs, given so that they look like the value of another
//! option, and options of programs whose purpose is another one.

use nuncio::internal::config::Policy;
use nuncio::internal::options::Mode;
use nuncio::internal::permission::rules::Rules;

use super::{judged, rule};

/// Programs with the arguments that a rule that allows the program does not cover.
const ASKS: &[(&str, &[&str])] = &[
    (
        "git log",
        &[
            "-1 -p -IS --output=f",
            "-OS --output=f",
            "-mS --output=f",
            "-cS --output=f",
            "-rG --output=f",
            "-tG --output=f",
            "--decorate-refs -- --output=f",
            "-p -S -- --output=f",
            "$x -- --output=f",
        ],
    ),
    ("git diff", &["-IL --output=f", "-L --output=f"]),
    ("git show", &["-IxG --output=f"]),
    ("git diff-tree", &["-L --output=f HEAD"]),
    ("git rev-list", &["-L --output=f HEAD"]),
    ("git blame", &["--contents -- --output=f a"]),
    ("git format-patch", &["-Iv -o d --root HEAD", "--subject-prefix -- -o d HEAD"]),
    ("git bisect", &["view -p --output=f", "visualize --output=f"]),
    ("git bundle", &["create b HEAD --output=f"]),
    ("git checkout-index", &["--prefix=/d/ -a"]),
    ("git cherry-pick", &["--output=f HEAD"]),
    ("git clone", &["--separate-git-dir=d u", "--depth 1 --separate-git d u"]),
    ("git commit-graph", &["write --object-dir=d"]),
    ("git gc", &["--expire-to=d"]),
    ("git init", &["--separate-git-dir d"]),
    ("git maintenance", &["register --config-file=f"]),
    ("git multi-pack-index", &["--object-dir=d write"]),
    ("git revert", &["--output=f HEAD"]),
    ("base64", &["-i a -o f", "--output=f a"]),
    (
        "curl",
        &[
            "-T a file:///f",
            "-Ta FILE:/f",
            "--upload-file a --url file:///f",
            "-T a '{file}:///f'",
            "-T a \"$u\"",
            "--proto-default file -T a /f",
            "--variable x=f --expand-output '{{x}}' u",
            "--expand-dump-header '{{x}}' u",
            "--expand-config '{{x}}' u",
            "--expand-write-out '{{x}}' u",
            "-H -- -o f u",
            "--header -- -o f u",
            "-H -o f u",
        ],
    ),
    ("dpkg", &["--log=f -l", "--log f -l"]),
    (
        "gcc",
        &[
            "-MF f -M a.c",
            "-MD -MFf a.c",
            "-aux-info f -c a.c",
            "-save-temps a.c",
            "-dumpdir d a.c",
            "-fdump-tree-original=f a.c",
            "-Wl,-Map=f a.c",
            "-Xlinker -Map=f a.c",
            "-Wl,@f a.c",
            "-Wa,@f a.c",
            "--gcc-toolchain=d a.c",
        ],
    ),
    ("g++", &["-fmodules-ts '-fmodule-mapper=|x' a.cc"]),
    ("clang", &["--config f a.c", "-cc1 -load x.so a.c", "-mllvm -load=x.so a.c"]),
    (
        "go",
        &[
            "test -coverprofile=f ./...",
            "test -cpuprofile f ./...",
            "test -outputdir=d ./...",
            "test --memprofile=f",
            "test -o f",
            "test -args -test.cpuprofile=f",
            "build -o f ./...",
            "build -gcflags=-cpuprofile=f",
            "env -w GOFLAGS=-x",
        ],
    ),
    ("less", &["'-pa$of' a", "'-Pa$kf' a", "-b5of a", "-j5kf a"]),
    ("patch", &["-o f -i a", "-r f -i a", "-d d -i a", "--output=f -i a"]),
    (
        "rsync",
        &[
            "--log-file=f a b",
            "--write-batch=f a b",
            "--only-write-batch=f a b",
            "--backup-dir=d a b",
            "-T d a b",
            "--exclude -- -e x a b",
        ],
    ),
    ("rustc", &["--extern m=x.so a.rs", "-L d a.rs", "-Ld a.rs", "--sysroot d a.rs"]),
    ("rustdoc", &["--test a.rs", "--test-builder x a.rs", "--test-builder-wrapper x a.rs"]),
    ("rustfmt", &["--print-config default f"]),
    ("scp", &["-J h a b:"]),
    ("sdiff", &["-W -o f a b", "-Wo f a b"]),
    ("sed", &["-e p -ip a", "-I .bak p a"]),
    ("sort", &["-yt -o f a", "-yk -o f a", "-t -- -o f a"]),
    ("sqlite3", &["-readonly :memory: \"VACUUM INTO 'f'\"", ":memory: \"vacuum main into 'f'\"", "a.db \"ATTACH 'f' AS x\""]),
    ("systemctl", &["status -H h"]),
    ("tar", &["--set-mtime-command=x -cf a b", "-C -- --to-command=x -xf a"]),
    ("tree", &["-Lo 1 f", "-Po a f", "-I -- -o f"]),
    ("xxd", &["-ps a b", "-r -ps a b", "-rs a b", "-bl a b", "-us a b", "-pc a b", "-pg a b", "-s x a"]),
    ("zip", &["-lf f a b", "-rlf f a b", "-b d a b", "-O f a b", "--logfile-path=f a b"]),
    ("zstdcat", &["-M -o f a", "-Mo f a", "-M5o f a"]),
];

/// Programs with the arguments that such a rule covers.
const ALLOWED: &[(&str, &[&str])] = &[
    ("git log", &["--oneline -- *.rs", "-S x -p", "-5 HEAD -- --output=f"]),
    ("git diff", &["--stat -- \"$f\"", "-w -- a"]),
    ("curl", &["-T a https://example.org/b", "-H 'Accept: a' u", "--expand-header '{{x}}' u"]),
    ("gcc", &["-O2 -Wall -o a a.c", "-Wl,-rpath,/d a.c", "-dumpversion"]),
    ("go", &["test -run TestA -v ./pkg", "build -mod=mod ./..."]),
    ("patch", &["-p1 -i a", "-p 1 -i a"]),
    ("rsync", &["-a --exclude target a b"]),
    ("scp", &["-P 22 a b:"]),
    ("sort", &["-t , -k 2 a", "-y0 a"]),
    ("sqlite3", &["a.db 'select attached from vacuums'"]),
    ("tree", &["-L 2", "-P a"]),
    ("xxd", &["-ps a", "-l 5 a", "-s 0x10 a", "-c 8 -g 1 a"]),
    ("zip", &["-r a.zip b"]),
];

#[test]
fn rule_for_a_program_does_not_cover_options_that_look_like_values() {
    let mut wrong = Vec::new();
    for (table, expected) in [(ASKS, Policy::Ask), (ALLOWED, Policy::Allow)] {
        for (program, lines) in table {
            let allowing = Rules { user: vec![rule(Policy::Allow, &format!("{program} *"))], ..Rules::default() };
            for line in lines.iter().map(|arguments| format!("{program} {arguments}")) {
                let found = judged(&allowing, Mode::Ask, "", &line);
                wrong.extend((found != expected).then(|| format!("{line}: {found:?}, not {expected:?}")));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
