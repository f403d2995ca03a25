//! Words of French.

use super::language::Language;
use crate::claims::check::Kinds;

pub(super) const FRENCH: Language = Language {
    kinds: &[
        (Kinds::TEST, "tests|suite de tests|tests unitaires"),
        (Kinds::BUILD, "build|compilation"),
        (Kinds::LINT, "lint|linter"),
        (Kinds::TYPES, "vérification des types|vérification de types|typage"),
        (Kinds::FORMAT, "formatage|mise en forme"),
    ],
    statements: &[
        (
            Kinds::BUILD,
            "\
            compile sans erreur|compile sans erreurs|compile correctement|\
            aucune erreur de compilation",
        ),
        (Kinds::TYPES, "aucune erreur de type"),
        (Kinds::LINT, "aucune erreur de lint"),
    ],
    passes: "\
        >passent|>passe|>passés|>passé|>réussissent|>réussit|>réussi|réussis|réussie|réussies|\
        au vert|verts|>avec succès|sans erreur|sans erreurs|aucune erreur|sans avertissement|\
        aucun avertissement|aucun échec|est propre|0 erreur|0 échec",
    between: "\
        tous toutes les la le sont est ont a été maintenant désormais toujours aussi et ils elles \
        unitaires existants nouveaux complète complets se terminent termine s'exécutent s'exécute \
        bien sans exécutés terminée terminé ne signale rapporte s'est",
    before: "j'ai j ai exécuté nous avons lancé tous toutes les le la nouveaux avec projet code maintenant",
    prepositions: "de du des pour dans sur avec en",
    after: "\
        et avec sans en sur correctement tous toutes bien maintenant désormais localement aussi \
        après dans",
    blockers: "\
        pas jamais ni non si lorsque quand dès devrait devraient doit doivent pourrait pourraient \
        peut peuvent sera seront avant déjà auparavant précédemment initialement ci pipeline github \
        selon dit indique vous votre vos sauf excepté hormis certains plupart presque seulement \
        uniquement mais cependant toutefois autres afin manuel manuels manuelle veuillez assurez \
        vérifiez vérifier hier pense crois probablement théorie théoriquement normalement",
    blocker_phrases: "afin que|pour que|à condition|avant ma|avant mes|une fois|non exécutés|à part",
    imperatives: "lancez exécutez vérifiez lance exécute vérifie assurez veuillez relancez",
};
