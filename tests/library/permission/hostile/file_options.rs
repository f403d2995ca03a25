//! Options and operands by which a program writes a file or runs a program: a rule that allows the
//! program does not cover them.

use nuncio::internal::config::Policy;
use nuncio::internal::options::Mode;
use nuncio::internal::permission::rules::Rules;
use nuncio::internal::permission::shell::CommandLine;

use super::{judged, rule};

/// Options of one program that name files.
pub struct Manual {
    pub program: &'static str,
    /// Arguments with which the program writes a file or runs a program.
    pub asks: &'static [&'static str],
    /// Arguments with which the program only reads files.
    pub reads: &'static [&'static str],
}

pub const MANUALS: &[Manual] = &[
    Manual { program: "apt-cache", asks: &["-p f", "--pkg-cache=f", "-o Dir::Bin=x"], reads: &["show a", "search b"] },
    Manual { program: "bzcat", asks: &["-zf x"], reads: &["x", "-k x"] },
    Manual {
        program: "curl",
        asks: &[
            "-o f u",
            "-sSfLo f u",
            "-of u",
            "--outp f u",
            "--output f u",
            "--output-dir d u",
            "-O u",
            "-OJ u",
            "-c f u",
            "--cookie-jar f u",
            "-D f u",
            "--dump-header f u",
            "--alt-svc f u",
            "--etag-save f u",
            "--hsts f u",
            "--libcurl f u",
            "--stderr f u",
            "--trace f u",
            "--trace-ascii f u",
            "-K f",
            "--config f",
            "-w '%output{f}' u",
            "-w @f u",
            "--unix-socket f u",
            "--abstract-unix-socket f u",
            "$x",
        ],
        reads: &[
            "-s u -o /dev/null -w '%{http_code}'",
            "-XPOST -HAccept:o -d @f u",
            "-H 'O: -o' u",
            "--cacert f --capath d --crlfile f --egd-file f --etag-compare f --netrc-file f --random-file f u",
            "--proxy-cacert f --proxy-capath d --proxy-crlfile f u",
            "--upload-file f --request-target p --quote c --ftp-alternative-to-user c u",
        ],
    },
    Manual {
        program: "date",
        asks: &["-s x", "--set=x"],
        reads: &["+%F", "-Is", "-Iseconds", "-d now", "-f f", "--file=f", "-r f", "--reference=f"],
    },
    Manual { program: "diff", asks: &[], reads: &["a b", "--exclude-from=f a b", "--starting-file=f a b"] },
    Manual { program: "diff3", asks: &["--diff-program=x a b c"], reads: &["-m a b c"] },
    Manual { program: "du", asks: &[], reads: &["--files0-from=f", "--exclude-from=f"] },
    Manual { program: "file", asks: &["-C -m f", "--compile"], reads: &["a", "-m f a", "-f f", "--files-from f"] },
    Manual {
        program: "find",
        asks: &[". -fprint f", ". -fprint0 f", ". -fprintf f %p", ". -fls f", ". -delete", ". -exec rm {} +", ". -execdir x ;"],
        reads: &[". -name x", ". -newer f -print", "-files0-from f"],
    },
    Manual {
        program: "gofmt",
        asks: &["-w a.go", "-l -w .", "-w=true a.go", "-cpuprofile f a.go", "-cpuprofile=f a.go"],
        reads: &["-l .", "-d a.go"],
    },
    Manual { program: "grep", asks: &[], reads: &["-f f a", "--file=f a", "--exclude-from=f x a", "-o a b"] },
    Manual { program: "hexdump", asks: &[], reads: &["-f f a", "--format-file f a"] },
    Manual { program: "history", asks: &["-w f", "-a f"], reads: &["", "5"] },
    Manual { program: "iconv", asks: &["-o f a", "--output=f a"], reads: &["-f utf-8 -t latin1 a"] },
    Manual { program: "info", asks: &["-o f ls", "--output=f ls", "--dribble=f"], reads: &["ls", "-f f"] },
    Manual { program: "jq", asks: &[], reads: &[".a f", "-f f a", "--slurpfile a f . b"] },
    Manual {
        program: "less",
        asks: &["-o f a", "-O f a", "-of a", "--log-file=f a", "--LOG-FILE=f a", "'+!x' a", "-kf a"],
        reads: &["a", "-N a"],
    },
    Manual {
        program: "man",
        asks: &["-P x a", "--pager=x a", "-Hx a", "-C f a", "--config-file=f a", "-X a"],
        reads: &["a", "-k a", "-M p a", "--manpath=p a"],
    },
    Manual { program: "nm", asks: &["--plugin x a", "@f"], reads: &["a", "-C a"] },
    Manual { program: "objdump", asks: &["--plugin x a", "@f"], reads: &["-d a", "--include=d -S a"] },
    Manual {
        program: "pip",
        asks: &[
            "--log f list",
            "--report f install a",
            "--cache-dir d list",
            "download -d d a",
            "wheel -w d a",
            "install -t d a",
            "install --target=d a",
        ],
        reads: &["list", "--cert f --client-cert f list", "install -r dev.txt", "install -rdev.txt"],
    },
    Manual { program: "ptx", asks: &["-G a b"], reads: &["a", "--break-file=f --ignore-file=f --only-file=f a"] },
    Manual { program: "rg", asks: &["--pre x a", "--hostname-bin x a"], reads: &["a", "-f f a", "--ignore-file f a"] },
    Manual { program: "fd", asks: &["-x rm", "--exec rm", "--exec-batch rm"], reads: &["a", "--ignore-file f a"] },
    Manual { program: "sdiff", asks: &["-o f a b", "--output=f a b", "--diff-program=x a b"], reads: &["a b"] },
    Manual {
        program: "sed",
        asks: &["-i s/a/b/ a", "-n -i p a", "-ni p a", "-i.bak s/a/b/ a", "--in-place p a", "'w f' a", "1e a", "-f f a"],
        reads: &["-n 5p a", "s/a/b/ a"],
    },
    Manual { program: "shuf", asks: &["-o f a", "--output=f a"], reads: &["a", "-n 1 a", "--random-source=f a"] },
    Manual {
        program: "sort",
        asks: &["-o f a", "a -o f", "-uof a", "--output=f a", "--out f a", "--compress-program=x a", "$x", "*.txt", "a -k2 -o f"],
        reads: &["a", "-t, -ko a", "-k 2 -o - a", "-- -o", "--random-source=f --files0-from=f --temporary-directory=d a"],
    },
    Manual { program: "ss", asks: &["-D f", "--diag=f", "-K"], reads: &["-tlnp", "-F f", "--filter=f"] },
    Manual {
        program: "tar",
        asks: &[
            "tf a --index-file=f",
            "-g f -cf a b",
            "cgf f a b",
            "--listed-incremental=f -cf a b",
            "--volno-file=f -tf a",
            "--checkpoint-action=exec=x -tf a",
            "--to-command=x -xf a",
            "-I x -tf a",
            "--use-compress-program=x -tf a",
            "-T f -cf a",
            "cTf f a",
            "--files-from=f -cf a",
            "--rsh-command=x -tf a",
            "--rmt-command=x -tf a",
            "-F x -tf a",
            "--remove-files -cf a b",
        ],
        reads: &[
            "tf a",
            "-C d -xzf a",
            "--add-file=f --directory=d --exclude-from=f --exclude-ignore=f --exclude-ignore-recursive=f -cf a",
            "--exclude-tag=f --exclude-tag-all=f --exclude-tag-under=f --one-top-level=d --group-map=f --owner-map=f --file=a -c b",
        ],
    },
    Manual { program: "tree", asks: &["-o f", "-R -H . -L 1"], reads: &["-L 2", "-P '*.o'", "--fromfile f"] },
    Manual { program: "uniq", asks: &["a b", "-c a b", "-f 1 a b", "-- a b"], reads: &["", "-c", "a", "-f 1 a"] },
    Manual { program: "wc", asks: &[], reads: &["-l a", "--files0-from=f"] },
    Manual {
        program: "wget",
        asks: &[
            "-O f u",
            "-qO f u",
            "--output-document=f u",
            "-o f u",
            "--output-file=f u",
            "-a f u",
            "--append-output=f u",
            "-P d u",
            "--directory-prefix=d u",
            "--rejected-log=f u",
            "--save-cookies=f u",
            "--warc-file=f u",
            "--warc-tempdir=d u",
            "--use-askpass=x u",
            "-e x u",
            "--execute=x u",
            "--config=f u",
        ],
        reads: &[
            "-q u",
            "-qO- u",
            "--input-file=f --load-cookies=f --post-file=f --body-file=f --certificate=f --private-key=f --ca-certificate=f",
            "--ca-directory=d --crl-file=f --pinnedpubkey=f --warc-dedup=f u",
        ],
    },
    Manual { program: "whatis", asks: &[], reads: &["--config-file=f a", "--manpath=p a"] },
    Manual { program: "xxd", asks: &["a b", "-r a b", "-l 5 a b"], reads: &["a", "-l 5 a", "-r a"] },
    Manual { program: "zstdcat", asks: &["-o f a", "--output-dir-flat d a", "--output-dir-mirror d a"], reads: &["a"] },
    Manual {
        program: "javac",
        asks: &[
            "-processor X A.java",
            "-processorpath p A.java",
            "--processor-path p A.java",
            "--processor-module-path p A.java",
            "-J-javaagent:x A.java",
            "-cp p A.java",
            "-classpath p A.java",
            "--class-path p A.java",
            "-Xplugin:x A.java",
        ],
        reads: &["A.java", "--module-path p --source-path p --boot-class-path p --upgrade-module-path p A.java"],
    },
    Manual { program: "rsync", asks: &["-e x a b", "--rsync-path=x a b", "--daemon --config=f"], reads: &["-a a b"] },
    Manual {
        program: "git log",
        asks: &["--output=f", "--outp f", "--o=f", "-5 --output f a", "$x"],
        reads: &["-5", "-- --output=f"],
    },
    Manual {
        program: "git diff",
        asks: &["--output=f", "--outpu=f", "--no-index --output f a b", "\"$x\"", "*.rs"],
        reads: &["--stat", "--output-indicator-new=+", "-- *.rs", "-Of a"],
    },
    Manual { program: "git show", asks: &["--output=f", "HEAD --outp=f"], reads: &["HEAD:a"] },
    Manual { program: "git blame", asks: &["--output=f a"], reads: &["a", "--ignore-revs-file f a", "--contents f a"] },
    Manual { program: "git stash", asks: &["show --output=f"], reads: &["list"] },
    Manual { program: "git archive", asks: &["-o f HEAD", "--output=f HEAD", "--exec=x --remote=y HEAD"], reads: &["HEAD"] },
    Manual { program: "git format-patch", asks: &["-o d", "--output-directory=d", "--output=f"], reads: &["--stdout HEAD~1"] },
    Manual { program: "git fast-export", asks: &["--export-marks=f HEAD"], reads: &["--import-marks=f HEAD"] },
    Manual { program: "git grep", asks: &["-Ox a", "--open-files-in-pager=x a"], reads: &["-f f", "-o a"] },
    Manual { program: "git init", asks: &["--template=d"], reads: &["-q", "."] },
    Manual { program: "git interpret-trailers", asks: &["--in-place f"], reads: &["f"] },
    Manual { program: "git read-tree", asks: &["--index-output=f HEAD"], reads: &["HEAD"] },
];

#[test]
fn rule_that_allows_a_program_does_not_cover_its_writes() {
    let mut wrong = Vec::new();
    for Manual { program, asks, reads } in MANUALS {
        // The programs that `find` and other programs run need rules of their own.
        let allowing = Rules { user: vec![rule(Policy::Allow, &format!("{program} *"))], ..Rules::default() };
        for (arguments, expected) in
            asks.iter().map(|arguments| (arguments, Policy::Ask)).chain(reads.iter().map(|arguments| (arguments, Policy::Allow)))
        {
            let line = format!("{program} {arguments}").trim_end().to_string();
            for line in [format!("env {line}"), line] {
                let found = judged(&allowing, Mode::Ask, "", &line);
                if found != expected {
                    wrong.push(format!("{line:?}: {found:?}, not {expected:?}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn rule_that_names_the_option_allows_the_write() {
    let cases = [
        ("sed -i *", "sed -i s/a/b/ a", Policy::Allow),
        ("git format-patch -o *", "git format-patch -o d HEAD", Policy::Allow),
        ("git diff --output=*", "git diff --output=f", Policy::Allow),
        ("find * -delete", "find . -delete", Policy::Ask),
        ("find . -delete", "find . -delete", Policy::Allow),
        ("git diff --stat *", "git diff --stat --output=f", Policy::Ask),
    ];
    for (pattern, line, expected) in cases {
        let rules = Rules { user: vec![rule(Policy::Allow, pattern)], ..Rules::default() };
        assert_eq!(judged(&rules, Mode::Ask, "", line), expected, "{pattern}: {line}");
    }
}

#[test]
fn written_files_are_known() {
    let cases = [
        ("git log -1 --output=a/b", &[Some("a/b")][..]),
        ("git -C x log --outp a", &[None]),
        ("sort a -ob", &[Some("b")]),
        ("uniq a b", &[Some("b")]),
        ("sed -n -i p a", &[Some("p"), Some("a")]),
        ("find . -fprint \"$x\"", &[None]),
        ("cd x && sort -o a b", &[None]),
        ("curl -so /dev/null u", &[]),
    ];
    for (line, expected) in cases {
        let line = CommandLine::parse("", line);
        assert_eq!(line.writes().collect::<Vec<_>>(), expected, "{line:?}");
    }
}
