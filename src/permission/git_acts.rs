//! Acts of git on the history or on the working tree that only the user decides about, and whether
//! a text asks for them. The words are a heuristic: a missed order leads to a question.

use std::ops::BitOr;

/// A set of such acts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GitActs(u8);

const COMMIT: GitActs = GitActs::COMMIT;
const PUSH: GitActs = GitActs(2);
const MERGE: GitActs = GitActs(4);
const REBASE: GitActs = GitActs(8);
const BRANCH: GitActs = GitActs(16);
const DISCARD: GitActs = GitActs(32);
const STASH: GitActs = GitActs(64);
const TAG: GitActs = GitActs(128);

/// The acts with their names in messages.
const NAMES: [(GitActs, &str); 8] = [
    (COMMIT, "commit"),
    (PUSH, "push"),
    (MERGE, "merge"),
    (REBASE, "rebase"),
    (BRANCH, "create, switch or delete a branch"),
    (DISCARD, "discard changes"),
    (STASH, "stash changes"),
    (TAG, "create or delete a tag"),
];

/// Words that ask for an act.
struct WordList {
    act: GitActs,
    /// Beginnings of words. `_` is a space, `=` after a word makes it a whole word.
    words: &'static str,
    /// Words of which a sentence must have one to mean git; empty: none is needed.
    beside: &'static str,
}

const ABOUT_GIT: &str = "git commit branch head origin remote upstream repo main= master= tag tags worktree change edit tree file \
                         stash fork pr= it= them= everything änder datei modif fichier cambi archiv измен файл ветк 更改 修改 文件 変更 ファイル";
const ABOUT_MERGING: &str = "git branch zweig rama= ветк 分支 ブランチ 브랜치 main= master= origin upstream remote pr= pull_request develop conflict konflikt conflit";
const BRANCHING: &str =
    "git creat make new= switch start open cut put delet remov renam onto separate own= move push checkout check_out";

const WORD_LISTS: [WordList; 17] = [
    WordList {
        act: COMMIT, words: "commit comite einchecken amend cherry-pick коммит закоммит 提交 コミット 커밋", beside: ""
    },
    WordList { act: COMMIT, words: "squash pull_request merge_request pr=", beside: "" },
    WordList { act: PUSH, words: "push pouss sube= subir запуш пуш 推送 プッシュ 푸시", beside: ABOUT_GIT },
    WordList { act: PUSH, words: "pull_request merge_request pr=", beside: "" },
    WordList {
        act: MERGE, words: "merg fusion zusammenführ слей слить слия 合并 マージ 병합", beside: ABOUT_MERGING
    },
    WordList { act: MERGE, words: "pull=", beside: "git origin remote upstream branch main= master= changes latest" },
    WordList { act: COMMIT, words: "merg", beside: ABOUT_MERGING },
    WordList { act: COMMIT, words: "rebas", beside: "" },
    WordList { act: REBASE, words: "rebas squash 变基 リベース", beside: "" },
    WordList { act: BRANCH, words: "branch", beside: BRANCHING },
    WordList { act: BRANCH, words: "checkout check_out switch wechs", beside: "git branch main= master= tag commit head zweig" },
    WordList { act: BRANCH, words: "worktree pull_request zweig rama= ветк 分支 ブランチ 브랜치", beside: "" },
    WordList {
        act: DISCARD,
        words: "discard reset restor revert undo roll_back rollback throw_away checkout check_out verwerf verwirf zurücksetz rückgängig \
                annul restaur descart deshac deshaz desfaz откат отмен сброс 撤销 还原 回滚 丢弃 元に戻 破棄 リセット 되돌",
        beside: ABOUT_GIT,
    },
    WordList { act: DISCARD, words: "clean", beside: "git repo worktree working_tree untracked" },
    WordList { act: STASH, words: "stash 贮藏 スタッシュ", beside: "" },
    WordList { act: TAG, words: "tag tags", beside: "git release version commit" },
    WordList { act: TAG, words: "标签 タグ", beside: "" },
];

/// Words that turn the meaning of their sentence.
const NEGATIONS: &str = "not= no= never without avoid refrain nicht kein ohne nie= niemals ne= n'= pas= sans jamais sin= nunca não= sem= \
                         non= senza mai= не= без= никогда bez= ikke= inte= 不 别 勿 未 無 なし しない せず ない 말 않 없이";
/// Words with which the sentence of an instruction file leaves the order to the user.
const CONDITIONS: &str = "only unless before bevor avant= antes= prima= перед if= when asked ask= request permission approv explicit nur= wenn seulement sauf si= solo если только 仅 除非 場合";
/// Words before `commit` and the like that make it a thing.
const BEFORE_THINGS: &str = "which what last latest previous recent each every whose per initial first";
/// Words after `commit` and the like that make it a thing.
const AFTER_THINGS: &str = "message history hash id= ids= log= logs= hook graph date author sha= policy convention style guideline introduced broke caused button function method endpoint form handler page dialog feature";
/// Words with which a question is a request.
const POLITE: &str = "can could would will please kannst könntest bitte peux pouvez pourr puedes podr pode poderia puoi potresti можешь 可以 能 请 ください";
/// Words with which a plural asks for commits.
const MAKING: &str = "make making creat split into write with";

/// Number of bytes at each end of a long text that are read.
const END_READ_BYTES: usize = 8 << 10;

impl GitActs {
    /// No act.
    pub const NONE: GitActs = GitActs(0);
    /// Commits to the current branch.
    pub const COMMIT: GitActs = GitActs(1);
    /// All acts: a person makes the call.
    pub const ALL: GitActs = GitActs(u8::MAX);
    /// All acts but those that leave the repository, for a workspace that nuncio made.
    pub const LOCAL: GitActs = GitActs(!PUSH.0);

    /// Returns whether there is no act.
    pub fn is_empty(self) -> bool {
        self == GitActs::NONE
    }

    /// Returns the acts that are not in `others`.
    pub fn without(self, others: GitActs) -> GitActs {
        GitActs(self.0 & !others.0)
    }

    /// Returns whether an act is also in `others`.
    pub fn meets(self, others: GitActs) -> bool {
        self.0 & others.0 != 0
    }

    /// Names the acts, such as `commit or push`.
    pub fn names(self) -> String {
        let names = NAMES.iter().filter(|(act, _)| self.meets(*act)).map(|(_, name)| *name);
        names.collect::<Vec<_>>().join(" or ")
    }

    /// Adds the acts that the user's text asks for, and removes those that it forbids. What stands
    /// in fenced code and behind `>` is not the user's.
    pub fn heed(&mut self, text: &str) {
        self.heed_sentences(text, |_| false);
    }

    /// Adds and removes acts like [`GitActs::heed`], for an instruction file: a sentence that
    /// leaves the order to the user asks for nothing.
    pub fn heed_instructions(&mut self, text: &str) {
        self.heed_sentences(text, |sentence| sentence.has(CONDITIONS));
    }

    fn heed_sentences(&mut self, text: &str, is_no_order: impl Fn(&Sentence<'_>) -> bool) {
        // `nuncio run` appends piped input, which is a file, to the prompt.
        let text = text.split("\n<stdin>\n").next().unwrap_or_default();
        let ends = text.len() > 2 * END_READ_BYTES;
        let (start, end) =
            (text.floor_char_boundary(END_READ_BYTES), text.ceil_char_boundary(text.len().saturating_sub(END_READ_BYTES)));
        let text = if ends { format!("{}\n{}", &text[..start], &text[end..]) } else { text.into() };
        let text = text.to_lowercase().replace('’', "'");
        for (sentence, asks) in sentences(&text) {
            let sentence = Sentence::new(sentence);
            let acts = sentence.acts();
            if acts == GitActs::NONE {
                continue;
            }
            if sentence.has(NEGATIONS) || sentence.words.iter().any(|word| word.ends_with("n't") || *word == "dont") {
                *self = self.without(acts);
            } else if !is_no_order(&sentence) && (!asks || sentence.has(POLITE)) {
                *self = *self | acts;
            }
        }
    }

    /// Returns the acts of a git command: `git`, then the subcommand and its arguments.
    pub(super) fn of(words: &[&str]) -> GitActs {
        let ["git", name, arguments @ ..] = words else { return GitActs::NONE };
        let has = |options: &[&str]| arguments.iter().any(|argument| options.contains(argument));
        let begins = |prefix: &str| arguments.iter().any(|argument| argument.starts_with(prefix));
        let first = arguments.first().copied().unwrap_or_default();
        let short = |letter: char| {
            arguments.iter().any(|argument| argument.starts_with('-') && !argument.starts_with("--") && argument.contains(letter))
        };
        match *name {
            "commit" | "push" if has(&["--dry-run"]) => GitActs::NONE,
            "push" if has(&["-n"]) => GitActs::NONE,
            "commit" | "cherry-pick" | "revert" | "am" | "commit-tree" => COMMIT,
            "push" => PUSH,
            "merge" | "pull" => MERGE,
            "rebase" | "filter-branch" => REBASE,
            "switch" if has(&["--discard-changes", "--force"]) || short('f') => BRANCH | DISCARD,
            "switch" | "update-ref" | "symbolic-ref" => BRANCH,
            "checkout" if has(&["--", ".", "--force", "--ours", "--theirs"]) || short('f') => DISCARD,
            "checkout" if has(&["--orphan"]) || short('b') || short('B') => BRANCH,
            // A branch or a file.
            "checkout" => BRANCH,
            "restore" if (has(&["--staged"]) || short('S')) && !has(&["--worktree"]) && !short('W') => GitActs::NONE,
            "restore" => DISCARD,
            "reset" if has(&["--hard", "--merge", "--keep"]) => DISCARD,
            "clean" if !has(&["--dry-run"]) && !short('n') => DISCARD,
            "stash" if !["list", "show"].contains(&first) => STASH,
            "branch" => {
                let changes =
                    has(&["--delete", "--move", "--copy", "--force"]) || ['d', 'D', 'm', 'M', 'c', 'C', 'f'].into_iter().any(short);
                let creates = has(&["--no-track", "--create-reflog", "--recurse-submodules"]) || begins("--track");
                let lists = first.is_empty() || first.starts_with("--") || ['l', 'a', 'r', 'v'].into_iter().any(short);
                if changes || creates || !lists { BRANCH } else { GitActs::NONE }
            }
            "worktree" if ["add", "remove", "move"].contains(&first) => BRANCH,
            "tag" if !first.is_empty() && !begins("--") && !['l', 'n', 'v'].into_iter().any(short) => TAG,
            "tag" if has(&["--delete", "--annotate", "--sign", "--force"]) || begins("--message") || begins("--file") => TAG,
            _ => GitActs::NONE,
        }
    }
}

impl BitOr for GitActs {
    type Output = GitActs;

    fn bitor(self, other: GitActs) -> GitActs {
        GitActs(self.0 | other.0)
    }
}

/// Returns the sentences of a text in lower case, and whether each is a question. Leaves out fenced
/// code and quoted lines.
fn sentences(text: &str) -> impl Iterator<Item = (&str, bool)> {
    let mut fenced = false;
    let own = move |line: &&str| {
        let line = line.trim_start();
        let is_fence = line.starts_with("```") || line.starts_with("~~~");
        fenced ^= is_fence;
        !fenced && !is_fence && !line.starts_with('>')
    };
    text.lines().filter(own).flat_map(|line| {
        let mut ends = line.char_indices().filter(move |(at, character)| match character {
            '.' | '!' | '?' | ';' => line[at + 1..].chars().next().is_none_or(char::is_whitespace),
            '。' | '！' | '？' | '；' => true,
            _ => false,
        });
        let mut start = Some(0);
        std::iter::from_fn(move || {
            let from = start?;
            let end = ends.next();
            start = end.map(|(at, character)| at + character.len_utf8());
            let sentence = &line[from..end.map_or(line.len(), |(at, _)| at)];
            Some((sentence, end.is_some_and(|(_, character)| character == '?' || character == '？')))
        })
        .flat_map(|(sentence, asks)| sentence.split(" but ").map(move |part| (part, asks)))
    })
}

/// A sentence in lower case, and its words.
struct Sentence<'a> {
    text: &'a str,
    words: Vec<&'a str>,
}

impl<'a> Sentence<'a> {
    fn new(text: &'a str) -> Sentence<'a> {
        let is_part = |character: char| character.is_alphanumeric() || matches!(character, '-' | '\'' | '_');
        let words = text.split(|character| !is_part(character)).map(|word| word.trim_matches(['-', '\'']));
        Sentence { text, words: words.filter(|word| !word.is_empty()).collect() }
    }

    fn acts(&self) -> GitActs {
        let asked = WORD_LISTS.iter().filter(|list| list.beside.is_empty() || self.is_short() || self.has(list.beside));
        asked.filter(|list| self.asks(list.words)).fold(GitActs::NONE, |acts, list| acts | list.act)
    }

    /// Returns whether the sentence has so few words that it has no other subject.
    fn is_short(&self) -> bool {
        self.words.len() <= 3
    }

    /// Returns whether the sentence has one of these words, whatever it means there.
    fn has(&self, list: &str) -> bool {
        list.split_whitespace().any(|entry| self.places(entry).next().is_some())
    }

    /// Returns whether the sentence has one of these words and it is no mere thing, as in `which
    /// commit`.
    fn asks(&self, list: &str) -> bool {
        list.split_whitespace().any(|entry| self.places(entry).any(|place| place.is_none_or(|place| !self.is_thing(place))))
    }

    fn is_thing(&self, place: usize) -> bool {
        let is_one_of =
            |word: Option<&&str>, list: &str| word.is_some_and(|word| list.split_whitespace().any(|entry| fits(entry, word)));
        let before = place.checked_sub(1).and_then(|before| self.words.get(before));
        is_one_of(before, BEFORE_THINGS)
            || is_one_of(self.words.get(place + 1), AFTER_THINGS)
            || self.words[place] == "commits" && !self.has(MAKING)
    }

    /// Returns the indexes of the words that fit an entry of a list; `None` for an entry of several
    /// words or in a script without spaces.
    fn places<'s>(&'s self, entry: &'s str) -> impl Iterator<Item = Option<usize>> + 's {
        let is_part = entry.contains('_') || entry.chars().any(|character| character >= '\u{2e80}');
        let part = (is_part && self.text.contains(&entry.replace('_', " "))).then_some(None);
        let words = self.words.iter().enumerate().filter(move |(_, word)| !is_part && fits(entry, word));
        part.into_iter().chain(words.map(|(index, _)| Some(index)))
    }
}

fn fits(entry: &str, word: &str) -> bool {
    entry.strip_suffix('=').map_or_else(|| word.starts_with(entry), |whole| word == whole)
}
