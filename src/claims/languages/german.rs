//! Words of German.

use super::language::Language;
use crate::claims::check::Kinds;

pub(super) const GERMAN: Language = Language {
    kinds: &[
        (
            Kinds::TEST,
            "\
                tests|testsuite|test-suite|unit-tests|unittests|testlauf|komponententests|\
                integrationstests|testfälle",
        ),
        (Kinds::BUILD, "build|kompilierung|übersetzung"),
        (Kinds::LINT, "lint|linter|linting"),
        (Kinds::TYPES, "typprüfung|typcheck|type-check"),
        (Kinds::FORMAT, "formatierung|formatprüfung"),
    ],
    statements: &[
        (
            Kinds::BUILD,
            "\
                kompiliert fehlerfrei|kompiliert erfolgreich|kompiliert ohne fehler|\
                kompiliert sauber|baut erfolgreich|baut fehlerfrei",
        ),
        (Kinds::TYPES, "keine typfehler"),
        (Kinds::LINT, "keine lint-fehler"),
        (Kinds::TEST, "keine testfehler"),
    ],
    passes: "\
        >durch|>erfolgreich|grün|>bestehen|>besteht|bestanden|fehlerfrei|>sauber|ohne fehler|\
        keine fehler|ohne warnungen|keine warnungen|durchgelaufen|ohne beanstandungen|0 fehler|\
        >in ordnung",
    between: "\
        alle allen sind ist laufen läuft liefen lief wurden wurde nun jetzt weiterhin auch wieder \
        und sowie die der das sie es gehen geht komplett vollständig neuen neue bestehenden alles \
        beide meldet melden zeigt ergibt haben hat lokal mit bleibt bleiben ausgeführt noch",
    before: "\
        ich habe wir haben alle die der das den dem mit auch nun jetzt es neue neuen bestehenden \
        sowie projekt code ausgeführt und keine",
    prepositions: "für in von im auf mit gegen aus",
    after: "und ohne mit auf in lokal nach auch durchgelaufen durch bestanden abgeschlossen wieder sowie",
    blockers: "\
        nicht kein nie niemals weder ungetestet wenn falls sobald sofern solange sollte sollten \
        müsste müssten könnte könnten kann können würde würden muss müssen werden wird soll sollen \
        damit sodass vorher zuvor bereits schon früher ursprünglich bisher davor vor ci pipeline \
        github laut sagt sagte angeblich außer bis einige manche meisten fast nahezu teilweise nur \
        aber jedoch allerdings sonst übrigen andere anderen bitte ihre ihr du dein deine manuell \
        manueller manuelle vermutlich wahrscheinlich hoffentlich erwartet ob um sicherstellen \
        gestern theoretisch wohl denke glaube vorausgesetzt nachdem",
    blocker_phrases: "nicht ausgeführt|um zu|stelle sicher|vor der änderung|bis auf",
    imperatives: "führe führen starte prüfe prüfen bitte stelle teste lass",
};
