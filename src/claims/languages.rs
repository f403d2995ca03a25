//! Words with which answers speak about checks.

mod english;
mod french;
mod german;
mod italian;
mod language;
mod portuguese;
mod russian;
mod spanish;

pub(crate) use language::Language;

pub(crate) const LANGUAGES: [Language; 7] = [
    english::ENGLISH,
    german::GERMAN,
    french::FRENCH,
    spanish::SPANISH,
    italian::ITALIAN,
    portuguese::PORTUGUESE,
    russian::RUSSIAN,
];

/// Words for a check that does not pass. They do not count after a word of `NONE`: "0 failed".
pub(crate) const FAULTS: &str = "\
    fail fails failed failing failure failures error errors broken breaks red flaky warn \
    fehler fehlgeschlagen fehlschlägt fehlschlagen scheitert scheitern rot échec échecs échoue échouent erreur erreurs \
    fallo fallos falla fallan falló fallaron error errores errore errori fallisce falliscono fallito falliti \
    falha falhas falham falhou falharam erro erros ошибка ошибки ошибок ошибками падают упал упали упало провалены";

/// Words before a fault that say that it is absent.
pub(crate) const NONE: &str = "\
    0 no zero without none ohne keine keinen sans aucun aucune sin ningún ninguna senza nessun nessuno sem nenhum nenhuma без нет \
    fix fixed fixes fixing resolve resolved repaired behoben corregido corrigé";

/// Words before which "no" and "without" are no negation.
pub(crate) const HARMLESS_NOUNS: &str = "\
    errors error warnings warning issues issue failures failure problems problem regressions regression violations findings \
    complaints diagnostics changes change diff output lint type clippy test compiler compilation compile build eslint \
    typescript linter linting new any further known modifications";

/// Phrases anywhere in an answer that admit that a check did not run or does not pass.
const ADMISSIONS: &[&str] = &[
    "not run",
    "not been run",
    "not be run",
    "n't run",
    "not able to run",
    "unable to run",
    "cannot run",
    "can't run",
    "without running",
    "not executed",
    "not verified",
    "unverified",
    "untested",
    "not tested",
    "n't tested",
    "skipped running",
    "still fail",
    "still red",
    "pre-existing",
    "preexisting",
    "already fail",
    "fails on main",
    "fail on main",
    "unrelated fail",
    "also fail without",
    "fail without my",
    "fail before",
    "failed before",
    "fails before",
    "known failure",
    "remaining fail",
    "nicht ausgeführt",
    "nicht laufen lassen",
    "nicht getestet",
    "schlagen weiterhin fehl",
    "non exécuté",
    "n'ai pas exécuté",
    "n'ai pas lancé",
    "pas pu exécuter",
    "no ejecut",
    "no he ejecutado",
    "sin ejecutar",
    "non ho eseguito",
    "non eseguit",
    "não execut",
    "não rodei",
    "не запуск",
    "не удалось запустить",
    "没有运行",
    "未运行",
    "无法运行",
    "未执行",
    "実行していません",
    "実行できません",
    "未実行",
];

/// Returns whether the answer admits that a check did not run or does not pass.
pub(crate) fn admits(answer: &str) -> bool {
    let answer = answer.to_lowercase().replace('’', "'");
    ADMISSIONS.iter().any(|phrase| answer.contains(phrase))
}

/// Words of headings and introductions of lists that tell the reader what to do or expect.
const STEPS: &str = "\
    next verify verifying how to-do todo steps plan expected expect expectations acceptance criteria definition should before \
    baseline previously usage instructions checklist you remaining follow-up recommended recommendations suggested optional \
    ci pipeline manual manually goal goals requirements reproduce earlier initial original when if once will \
    nächste schritte überprüfen prüfen anleitung erwartet étapes vérifier attendu próximos pasos verificar comprobar passi \
    verificare passos шаги проверить ожидается";
const STEP_PHRASES: &[&str] =
    &["下一步", "验证方法", "如何", "预期", "验收", "请", "次のステップ", "確認方法", "手順", "期待", "ci"];

/// Words of the introduction of a text that is not the answer's own, such as a draft.
const CONTENTS: &str = "\
    draft output outputs prints line lines heading answer reference fixture \
    sentence says mail email message template post announcement letter notes wording text slide slides entries changelog strings \
    example examples sample bullets legend rules rule entwurf nachricht vorlage texte beispiel brouillon exemple borrador \
    ejemplo bozza esempio rascunho exemplo черновик пример 草稿 模板 示例 例 下書き テンプレート";

/// Returns whether the introduction of a text says that it is not the answer's own.
pub(crate) fn announces_contents(text: &str) -> bool {
    let text = text.to_lowercase();
    let mut words = text.split(|character: char| !character.is_alphanumeric());
    words.any(|word| has_word(CONTENTS, word))
}

/// Returns whether a heading or the introduction of a list announces steps or expectations.
pub(crate) fn announces_steps(text: &str) -> bool {
    let text = text.to_lowercase();
    let mut words = text.split(|character: char| !character.is_alphanumeric() && character != '-');
    words.any(|word| has_word(STEPS, word)) || STEP_PHRASES.iter().any(|phrase| !phrase.is_ascii() && text.contains(phrase))
}

/// Returns whether the header of a table announces more than results: expectations, earlier
/// results, or results by platform.
pub(crate) fn is_expectation_header(cells: &[&str]) -> bool {
    let word = |word: &str| has_word("expected expectation before baseline ci target goal planned main previous todo", word);
    let is_header = |cell: &&str| cell.to_lowercase().split(|one: char| !one.is_alphanumeric()).any(word);
    cells.iter().any(is_header)
}

/// Returns whether a list of words, separated by spaces, has `word`.
pub(crate) fn has_word(list: &str, word: &str) -> bool {
    !word.is_empty() && list.split_ascii_whitespace().any(|listed| listed == word)
}
