//! Words of English.

use super::language::Language;
use crate::claims::check::Kinds;

pub(super) const ENGLISH: Language = Language {
    kinds: &[
        (
            Kinds::TEST,
            "\
                tests|test suite|full suite|whole suite|test suites|testsuite|test cases|test run|\
                specs|doctests|unittests|new test|unit test|regression test|integration test|\
                the test",
        ),
        (Kinds::BUILD, "build|builds|compilation"),
        (Kinds::LINT, "lint|linter|linters|linting|lints"),
        (
            Kinds::TYPES,
            "\
                type check|type checks|type-check|type-checks|type checking|type-checking|typecheck|\
                typechecking|typechecks|type checker",
        ),
        (Kinds::FORMAT, "formatting|format check|formatter|fmt|format"),
    ],
    statements: &[
        (
            Kinds::BUILD,
            "\
                compiles cleanly|compiles successfully|compiles without errors|\
                compiles without warnings|compiles without issues|compiles without any errors|\
                compiles with no errors|compiles with no warnings|compiles fine|>project compiles|\
                >code compiles|>crate compiles|>workspace compiles|>everything compiles|\
                >app compiles|builds cleanly|builds successfully|builds without errors|\
                builds without warnings|builds without issues|builds with no errors|builds fine|\
                >compiled successfully|>built successfully|>no compile errors|\
                >no compilation errors|>no compiler errors|>no build errors",
        ),
        (
            Kinds::TYPES,
            "\
                typechecks cleanly|type-checks cleanly|>code typechecks|>no type errors|\
                >zero type errors|>0 type errors|>no typescript errors|>0 typescript errors",
        ),
        (
            Kinds::LINT,
            "\
                lints cleanly|>no lint errors|>no lint warnings|>no linter errors|\
                >no linting errors|>no clippy warnings|>zero clippy warnings|>0 clippy warnings|\
                >no eslint errors",
        ),
        (Kinds::TEST, ">no test failures|>zero test failures|>0 test failures"),
    ],
    passes: "\
        >pass|>passes|>passed|>passing|>succeed|>succeeds|>succeeded|>completed successfully|\
        >successful|>green|>clean|!ok|>exits 0|>exits zero|>exited zero|>exited 0|exit code 0|\
        exits with 0|exited with 0|exit 0|exits cleanly|exited cleanly|>no errors|>no warnings|\
        >no issues|>no failures|>no problems|>no type errors|>no findings|>no violations|\
        >no complaints|>no diagnostics|>no lint errors|>0 errors|>0 warnings|>0 issues|>0 failures|\
        >0 failed|>zero errors|>zero warnings|>zero failures|>zero issues|>without errors|\
        >without warnings|>without issues|>without failures|>without problems|>without any errors|\
        >without any issues|>without error",
    between: "\
        all now still also both again successfully cleanly are is were was have has been suite \
        suites run runs ran running check checks and & they them these it there everything every \
        each of with exit result results status reports report reported shows show gives found \
        finds completes completed complete finished finishes the my our new existing unit \
        integration full whole entire release debug production total cases done fully executed just \
        e2e end-to-end added updated relevant related affected code project 100% backend frontend \
        returns returned came come comes back remain remains stay clean green",
    before: "\
        i we typescript i've we've have ran run running re-ran reran verified confirmed checked executed \
        validated with using via by that finally then done also result results there are it is now \
        the this change changes fix project workspace crate code codebase app application package \
        repo library solution implementation new existing unit integration regression e2e \
        end-to-end snapshot release debug production frontend backend full whole entire updated \
        added my our all every each both of",
    prepositions: "for in on of under against from across including via through at using",
    after: "\
        with after locally now again cleanly successfully without as and too across at both here \
        including afterwards throughout everywhere fully overall together end-to-end checks check \
        checking suite since because using",
    blockers: "\
        not no never nor neither cannot can't don't doesn't didn't won't wouldn't shouldn't \
        couldn't haven't hasn't isn't aren't wasn't weren't without unable untested unverified if \
        once when whenever unless until till should would could may might must can assuming \
        provided expect expected expects supposed whether so ensure ensures ensuring make makes \
        making get gets let let's lets help helps keep keeps want wants need needs needed require \
        requires required verify confirm you your you'll will 'll going plan planned next todo tbd \
        later soon i'll we'll it'll they'll before previously already earlier originally prior \
        initially had baseline formerly yesterday previous last past stash stashed ci pipeline \
        github gitlab workflow workflows actions jenkins upstream according says said claims \
        claimed told mentions mentioned states stated readme description issue ticket reviewer \
        author maintainer user subagent sub-agent agent log logs pr comment except apart besides \
        most some many several few almost nearly mostly partially partly only half other others \
        rest remaining remainder exception but though although however individually isolation than \
        example hypothetically imagine suppose goal aim important criteria criterion gate guarantee \
        guarantees means meaning whichever why how what manual smoke sanity ad-hoc hand visual \
        browser curl skipped skip skipping ignoring disabled hang hangs hung crash crashes crashed \
        touched modified edited files flow scenario option alternative alternatives variant think \
        believe guess probably presumably hopefully likely theory theoretically verifying \
        confirming assume hope apparently seemingly seems seem",
    blocker_phrases: "\
        were passing|was passing|used to|make sure|as long as|in order|on main|at the start|\
        that pass|which pass|one of|out of|a part|to pass|until now|at first|feel free|if all|\
        known to|all but|on master|meant to",
    imperatives: "\
        run rerun re-run use execute verify check confirm ensure make try please see wait review \
        open consider push merge add keep watch go do",
};
