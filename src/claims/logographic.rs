//! Finds the checks that a sentence says to pass, in Chinese and Japanese, which do not separate
//! words.

use crate::claims::check::{CheckName, Kinds};
use crate::claims::commands::named_checks;
use crate::claims::words::AnswerToken;

/// Names of checks, separated by spaces.
const KINDS: &[(Kinds, &str)] = &[
    (Kinds::TEST, "测试 測試 テスト"),
    (Kinds::BUILD, "构建 编译 建置 編譯 ビルド コンパイル"),
    (Kinds::LINT, "lint 代码检查 静态检查 リント 静的解析 clippy eslint"),
    (Kinds::TYPES, "类型检查 型チェック 型検査"),
    (Kinds::FORMAT, "格式检查 格式化 フォーマット"),
];

/// Words for a check that passes, where only a symbol or one of `AFTER` may follow: "通过" also
/// means "by means of".
const STRICT_PASSES: &str = "通过 通過 成功 正常 合格";
const AFTER: &str = "了。，！；、）)（(:：,.!|-–—且并和しさでとをです";
const PASSES: &str = "\
    无错误 没有错误 无警告 没有警告 零错误 零警告 0个错误 无报错 \
    通りました 通ります 通っています 通っており 通った 通ることを確認 通り、 パスし パスする パス済 グリーン エラーなし エラーはありません \
    エラーはなく 警告なし 警告はありません 問題なし 問題ありません 問題なく 失敗なし";

/// Parts of phrases that say that nothing failed.
const DENIED: &str = "\
    无错误 没有错误 无警告 没有警告 零错误 零警告 0个错误 无报错 无失败 没有失败 0个失败 0失败 没有任何错误 \
    エラーなし エラーはありません エラーはなく 警告なし 警告はありません 問題なし 問題ありません 失敗なし 失敗0 失敗はありません 0件の失敗";

/// Parts of sentences that do not say that a check passes now.
const BLOCKERS: &str = "\
    未 没 不 无法 如果 若 应该 应当 将 会 之前 以前 曾 先前 原先 此前 上次 请 需 确保 保证 希望 要求 是否 吗 部分 除 几乎 只 仅 但 \
    流水线 手动 手工 待 您 你 让 使得 以便 直到 失败 错误 报错 其余 其他 一旦 时 当 即可 就 理论 可能 大概 估计 也许 据说 认为 \
    ない ません なかっ はず なら れば たら 場合 予定 前に 以前 前回 ください ですか 必要 でしょう 一部 以外 ほとんど だけ のみ しかし ただし \
    ように 手動 まで べき 失敗 エラー うち 思 おそらく たぶん 理論 後に た後 後、 ? ？ ❌ ⚠ ci- ci上 ciで ci\u{20}";

/// Words of labels that introduce results.
const LABELS: &str = "结果 验证 测试 状态 总结 完成 检查 結果 検証 テスト 確認 完了 検査";

/// Words that may stand before the check in its clause.
const OPENINGS: &str = "\
    所有 全部 现有 新增 新的 新 的 单元 集成 回归 并且 且 并 和 与 以及 现在 目前 均 已经 已 运行 执行 验证 确认 个 全 相关 本地 也 了 通过 项目 代码 \
    我 用 、 すべて 全て 全 の 既存 新規 新しい ユニット 単体 結合 回帰 また 現在 修正後 ローカル で 件 個 と も は が を 実行し 確認し プロジェクト";

/// Verbs for the repair of a fault.
const REPAIRS: [&str; 5] = ["修复", "修正", "解决", "直し", "解消"];

/// Maximum length of a sentence, in bytes.
const SENTENCE_MAX: usize = 2000;
/// Maximum number of characters between a check and what it does.
const GAP_MAX: usize = 24;

/// Stands for a code span whose program makes a check.
const CHECK: char = '\u{e000}';

/// Returns the checks that the sentence says to pass.
pub(crate) fn checks(tokens: &[AnswerToken]) -> Vec<CheckName> {
    let mut programs = Vec::new();
    let text = joined(tokens, &mut programs);
    if text.len() > SENTENCE_MAX || !text.chars().any(is_logographic) || is_blocked(&text) {
        return Vec::new();
    }
    let mut checks = Vec::new();
    for (place, _) in text.match_indices(CHECK) {
        let index = text.get(..place).unwrap_or_default().matches(CHECK).count();
        if passes_near(&text, place, CHECK.len_utf8()) {
            checks.extend(programs.get(index).cloned().into_iter().flatten());
        }
    }
    if !programs.is_empty() {
        return checks;
    }
    for (kinds, names) in KINDS {
        let is_claimed = |name: &str| text.match_indices(name).any(|(place, _)| passes_near(&text, place, name.len()));
        if names.split(' ').any(is_claimed) {
            checks.push(CheckName::Kind(*kinds));
        }
    }
    checks
}

/// Returns whether the sentence speaks of a check that fails.
pub(crate) fn discloses_failure(tokens: &[AnswerToken]) -> bool {
    let mut text = joined(tokens, &mut Vec::new());
    for phrase in words(DENIED) {
        text = text.replace(phrase, "");
    }
    ["失败", "失敗", "未通过", "超时"].iter().any(|fault| text.contains(fault))
}

/// Joins the sentence without spaces. Code spans that are checks are replaced by `CHECK`.
fn joined(tokens: &[AnswerToken], programs: &mut Vec<Vec<CheckName>>) -> String {
    let mut text = String::new();
    for token in tokens {
        match token {
            AnswerToken::LineWord(word) | AnswerToken::Number(word) => text.push_str(word),
            AnswerToken::Symbol(symbol) => text.push(*symbol),
            AnswerToken::Mark => text.push('。'),
            AnswerToken::Code(code) => {
                let named = named_checks(code);
                text.push(if named.is_empty() { '`' } else { CHECK });
                programs.extend((!named.is_empty()).then_some(named));
            }
        }
    }
    text
}

fn is_logographic(character: char) -> bool {
    matches!(character, '\u{3040}'..='\u{30ff}' | '\u{4e00}'..='\u{9fff}')
}

fn words(list: &str) -> impl Iterator<Item = &str> {
    list.split_ascii_whitespace()
}

fn is_blocked(text: &str) -> bool {
    let mut rest = text.to_owned();
    for phrase in words(DENIED) {
        rest = rest.replace(phrase, "");
    }
    // "修复了越界错误，测试通过": the fault is what was repaired.
    let is_repair = |part: &&str| REPAIRS.iter().any(|verb| part.contains(verb));
    let rest: Vec<&str> = rest.split(['，', '、', '。']).filter(|part| !is_repair(part)).collect();
    let rest = rest.join("，");
    words(BLOCKERS).any(|blocker| rest.contains(blocker)) || rest.contains("ci") || is_part(text)
}

/// Returns whether the sentence has a fraction below 1.
fn is_part(text: &str) -> bool {
    text.match_indices('/').any(|(place, _)| {
        let digits = |text: &str| text.chars().take_while(char::is_ascii_digit).collect::<String>();
        let before: String = text.get(..place).unwrap_or_default().chars().rev().take_while(char::is_ascii_digit).collect();
        let before: String = before.chars().rev().collect();
        let after = digits(text.get(place + 1..).unwrap_or_default());
        !before.is_empty() && !after.is_empty() && before != after
    })
}

/// Returns whether the text says near the check at `place` that it passes.
fn passes_near(text: &str, place: usize, length: usize) -> bool {
    let behind = text.get(place + length..).unwrap_or_default();
    let after: String = behind.chars().take(GAP_MAX).take_while(|character| !"。；！".contains(*character)).collect();
    let strict = |phrase: &str| {
        let mut places = after.match_indices(phrase);
        places.any(|(place, _)| {
            let next = behind.get(place + phrase.len()..).and_then(|rest| rest.chars().next());
            next.is_none_or(|next| AFTER.contains(next) || next.is_ascii_digit())
        })
    };
    let Some(clause) = before_clause(text, place).filter(|clause| is_opening(clause)) else { return false };
    // Before the check: 通过了所有测试.
    let is_object =
        ["通过了所有", "通过了全部", "通过所有", "通过全部", "已通过", "通过了"].iter().any(|verb| clause.ends_with(verb));
    let is_end = behind.chars().next().is_none_or(|next| AFTER.contains(next));
    words(PASSES).any(|phrase| after.contains(phrase)) || words(STRICT_PASSES).any(strict) || (is_object && is_end)
}

/// Returns the text between the start of the clause and `place`. `None` if a label stands before it
/// that does not introduce results.
fn before_clause(text: &str, place: usize) -> Option<&str> {
    let before = text.get(..place)?;
    let ends = ['，', '。', '；', ';', ',', '（', '(', '：', ':', '-', '–', '|', '！', '"'];
    let clause = before.rsplit(ends).next()?;
    let label = before.strip_suffix(clause)?.strip_suffix(['：', ':']).map(|before| before.rsplit(ends).next().unwrap_or_default());
    let is_known = |label: &str| words(LABELS).any(|word| label.contains(word)) || is_opening(label);
    label.is_none_or(is_known).then_some(clause)
}

/// Returns whether only words that may open a statement about a check stand before it.
fn is_opening(clause: &str) -> bool {
    let mut rest = clause.trim_start_matches(|one: char| one.is_ascii_digit() || one == CHECK);
    while !rest.is_empty() {
        let Some(next) = words(OPENINGS).find_map(|word| rest.strip_prefix(word)) else { return false };
        rest = next.trim_start_matches(|one: char| one.is_ascii_digit() || one == CHECK);
    }
    true
}
