//! Words of Spanish.

use super::language::Language;
use crate::claims::check::Kinds;

pub(super) const SPANISH: Language = Language {
    kinds: &[
        (Kinds::TEST, "pruebas|tests|suite de pruebas"),
        (Kinds::BUILD, "compilación|build|construcción"),
        (Kinds::LINT, "lint|linter"),
        (Kinds::TYPES, "comprobación de tipos|verificación de tipos"),
        (Kinds::FORMAT, "formato|formateo"),
    ],
    statements: &[
        (Kinds::BUILD, "compila sin errores|compila correctamente|compila bien"),
        (Kinds::TYPES, "no hay errores de tipos|sin errores de tipos"),
        (Kinds::LINT, "no hay errores de lint"),
    ],
    passes: "\
        >pasan|>pasa|>pasaron|>pasó|>pasado|>pasando|exitosa|exitosas|exitoso|con éxito|en verde|\
        sin errores|sin error|sin fallos|sin advertencias|correctamente|superadas|limpio|0 errores|\
        0 fallos|ningún error",
    between: "\
        todas todos las los la el son es está están han ha sido se ahora también y siguen sigue \
        unitarias unitarios nuevas existentes completa completas ejecutan ejecutaron ejecutó \
        termina terminan terminó terminaron fue fueron",
    before: "he hemos ejecutado ejecuté todas todos las los la el con ahora proyecto código nuevas nuevos no",
    prepositions: "de del para en con sobre",
    after: "y con sin en correctamente todas todos ahora también localmente tras bien",
    blockers: "\
        no nunca ni tampoco si cuando debería deberían debe deben podría podrían puede pueden será \
        serán pasarán antes ya previamente anteriormente inicialmente ci pipeline github según dice \
        usted tu tus su sus salvo excepto menos algunas algunos mayoría casi solo sólo pero aunque \
        otras otros manual manuales asegúrate verifica verificar ayer aún creo probablemente teoría \
        supongo",
    blocker_phrases: "para que|una vez|antes de|no ejecuté|hay que",
    imperatives: "ejecuta ejecute corre verifica asegúrate comprueba por",
};
