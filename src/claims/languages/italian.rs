//! Words of Italian.

use super::language::Language;
use crate::claims::check::Kinds;

pub(super) const ITALIAN: Language = Language {
    kinds: &[
        (Kinds::TEST, "test|suite di test"),
        (Kinds::BUILD, "build|compilazione"),
        (Kinds::LINT, "lint|linter"),
        (Kinds::TYPES, "controllo dei tipi|verifica dei tipi"),
        (Kinds::FORMAT, "formattazione"),
    ],
    statements: &[
        (Kinds::BUILD, "compila senza errori|compila correttamente"),
        (Kinds::TYPES, "nessun errore di tipo"),
        (Kinds::LINT, "nessun errore di lint"),
    ],
    passes: "\
        >passano|>passa|>passati|>passato|>superati|>superato|riuscita|riuscito|con successo|\
        senza errori|nessun errore|senza avvisi|verdi|>pulito|0 errori",
    between: "\
        tutti tutte i il la le gli sono è stati stato stata ora adesso anche e ancora nuovi \
        esistenti unitari completa hanno ha terminano termina eseguiti",
    before: "ho abbiamo eseguito tutti tutte i il la le con ora progetto codice nuovi",
    prepositions: "di del per in su della dei con",
    after: "e con senza in correttamente tutti tutte ora anche localmente dopo",
    blockers: "\
        non mai né se quando qualora dovrebbe dovrebbero deve devono potrebbe potrebbero può \
        possono sarà saranno passeranno prima già precedentemente inizialmente ci pipeline github \
        secondo dice tuo tuoi tranne eccetto alcuni alcune maggior quasi solo soltanto ma però \
        tuttavia altri altre manuale manuali verifica assicurati ieri credo penso probabilmente \
        teoria",
    blocker_phrases: "in modo|una volta|prima di|a meno|affinché",
    imperatives: "esegui eseguire lancia verifica assicurati controlla",
};
