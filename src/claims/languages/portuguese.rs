//! Words of Portuguese.

use super::language::Language;
use crate::claims::check::Kinds;

pub(super) const PORTUGUESE: Language = Language {
    kinds: &[
        (Kinds::TEST, "testes|suíte de testes"),
        (Kinds::BUILD, "build|compilação"),
        (Kinds::LINT, "lint|linter"),
        (Kinds::TYPES, "verificação de tipos|checagem de tipos"),
        (Kinds::FORMAT, "formatação"),
    ],
    statements: &[
        (Kinds::BUILD, "compila sem erros|compila corretamente"),
        (Kinds::TYPES, "nenhum erro de tipo"),
        (Kinds::LINT, "nenhum erro de lint"),
    ],
    passes: "\
        >passam|>passa|>passaram|>passou|>passando|>aprovados|com sucesso|sem erros|sem erro|\
        sem falhas|sem avisos|bem-sucedido|bem-sucedida|>limpo|nenhum erro|0 erros|0 falhas",
    between: "\
        todos todas os as o a são é está estão foram foi agora também e continuam continua novos \
        existentes unitários completa executados executado concluído concluída",
    before: "executei rodei todos todas as os a o com agora projeto código novos",
    prepositions: "de do da para em com dos",
    after: "e com sem em corretamente todos todas agora também localmente após",
    blockers: "\
        não nunca nem se quando deve devem deveria deveriam poderia pode podem será serão passarão \
        antes já previamente anteriormente inicialmente ci pipeline github segundo diz você seu \
        seus sua exceto salvo alguns algumas maioria quase só somente apenas mas porém outros \
        outras manual manuais verifique ontem acredito acho provavelmente teoria",
    blocker_phrases: "para que|uma vez|antes de|assim que|a menos",
    imperatives: "execute rode verifique certifique confira",
};
