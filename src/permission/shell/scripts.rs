//! Analyses code for `sed`, `awk` and `sqlite3`. Code is harmless if it runs no command and, for
//! `sed` and `awk`, writes no file.

use std::iter::Peekable;
use std::str::Chars;

use super::runs::Runs;
use super::word::Word;

/// Analyses the arguments of a program whose first operand is code, unless options supply the code.
/// `flags` and `valued` are the letters of known options without and with a value. If `flags` is
/// not empty, the option `e` takes code.
pub(crate) fn analyse(arguments: &[Word], flags: &str, valued: &str, is_plain: impl Fn(&str) -> bool) -> Runs {
    let mut has_code = false;
    let mut rest = arguments.iter();
    while let Some(word) = rest.next() {
        let Some(value) = word.value() else {
            if has_code && !word.known_prefix().starts_with('-') && !word.may_be_option() {
                continue;
            }
            return Runs::Unknown;
        };
        match value.strip_prefix('-').filter(|option| !option.is_empty()) {
            None if has_code => {}
            None if is_plain(&value) => has_code = true,
            None => return Runs::Unknown,
            Some(option) if option.chars().all(|flag| flags.contains(flag)) => {}
            // The backup suffix in `sed -i.bak`.
            Some(option)
                if flags.contains('i')
                    && option.starts_with("i.")
                    && option[2..].chars().all(|one| one.is_ascii_alphanumeric()) => {}
            Some(option) if option.strip_suffix('e').is_some_and(|option| option.chars().all(|flag| flags.contains(flag))) => {
                if flags.is_empty() || !rest.next().and_then(Word::value).is_some_and(|code| is_plain(&code)) {
                    return Runs::Unknown;
                }
                has_code = true;
            }
            Some(option) if !has_code && option.starts_with(|letter| valued.contains(letter)) => {
                let known = option.len() > 1 || rest.next().and_then(Word::value).is_some();
                if !known {
                    return Runs::Unknown;
                }
            }
            Some(_) => return Runs::Unknown,
        }
    }
    Runs::Itself
}

/// Returns whether an awk program runs no command and writes no file.
pub(crate) fn is_plain_awk(code: &str) -> bool {
    // `>` is a comparison, except after `print`, which occurs within braces.
    let mut depth = 0_i32;
    let mut redirects = false;
    for character in code.chars() {
        match character {
            '{' => depth += 1,
            '}' => depth -= 1,
            '>' => redirects |= depth > 0,
            _ => {}
        }
    }
    let counted = !code.contains(['"', '/', '#']);
    let compares = !code.contains('>') || !code.contains("print") || (counted && !redirects);
    let code = code.replace("||", " ");
    compares && !["system", "|", "getline", "@", "\\"].iter().any(|word| code.contains(word))
}

/// Returns whether a sed script only prints, deletes, quits and substitutes at lines by number or
/// pattern, without running or writing anything.
pub(crate) fn is_plain_sed(code: &str) -> bool {
    let mut rest = code.chars().peekable();
    let mut commands = 0;
    loop {
        while rest.next_if(|next| " \t\n;".contains(*next)).is_some() {}
        if rest.peek().is_none() {
            return commands > 0;
        }
        commands += 1;
        if sed_command(&mut rest).is_none() || rest.peek().is_some_and(|next| !" \n;".contains(*next)) {
            return false;
        }
    }
}

/// Skips one sed command. Returns `None` if the command may do more than [`is_plain_sed`] accepts.
fn sed_command(rest: &mut Peekable<Chars<'_>>) -> Option<()> {
    sed_address(rest)?;
    if rest.next_if_eq(&',').is_some() {
        sed_address(rest)?;
    }
    while rest.next_if(|next| " !".contains(*next)).is_some() {}
    match rest.next()? {
        'p' | 'd' | 'q' | '=' | 'n' | 'N' | 'D' | 'P' | 'h' | 'H' | 'g' | 'G' | 'x' => Some(()),
        's' => {
            let delimiter = rest.next_if(|delimiter| "/|#,:@!".contains(*delimiter))?;
            sed_text(rest, delimiter)?;
            sed_text(rest, delimiter)?;
            while rest.next_if(|flag| "gpIi0123456789".contains(*flag)).is_some() {}
            Some(())
        }
        _ => None,
    }
}

/// Skips an address: a number, `$`, a pattern between slashes, or nothing.
fn sed_address(rest: &mut Peekable<Chars<'_>>) -> Option<()> {
    while rest.next_if_eq(&' ').is_some() {}
    if rest.next_if_eq(&'/').is_some() {
        sed_text(rest, '/')?;
        rest.next_if_eq(&'I');
        return Some(());
    }
    if rest.next_if_eq(&'$').is_none() {
        while rest.next_if(|next| next.is_ascii_digit() || *next == '~').is_some() {}
    }
    Some(())
}

/// Skips text up to and including `delimiter`. Returns `None` if the delimiter is within brackets,
/// because sed implementations differ on whether such a delimiter ends the text.
fn sed_text(rest: &mut Peekable<Chars<'_>>, delimiter: char) -> Option<()> {
    let mut bracket = false;
    loop {
        match rest.next()? {
            '\n' => return None,
            '\\' => {
                rest.next().filter(|escaped| *escaped != '\n')?;
            }
            end if end == delimiter => return (!bracket).then_some(()),
            '[' => bracket = true,
            ']' => bracket = false,
            _ => {}
        }
    }
}

/// Returns whether `sqlite3` only prints its version, or its arguments contain statements that run
/// no other code and use no other file. Without a statement, `sqlite3` reads its standard input,
/// which cannot be inspected.
pub(crate) fn is_plain_sqlite(arguments: &[Word]) -> bool {
    let known: Option<Vec<String>> = arguments.iter().map(Word::value).collect();
    let Some(known) = known else { return false };
    let options =
        "-batch -bail -box -column -csv -header -html -json -line -list -markdown -noheader -quote -readonly -table -tabs";
    let (options_given, operands): (Vec<&String>, Vec<&String>) = known.iter().partition(|word| word.starts_with('-'));
    let plain = |sql: &&String| {
        let lower = sql.to_ascii_lowercase();
        let mut names = lower.split(|character: char| !character.is_ascii_alphanumeric() && character != '_');
        !sql.trim_start().starts_with('.')
            && !sql.contains("\n.")
            && !["edit", "load_extension", "writefile", "fts3_tokenizer"].iter().any(|word| lower.contains(word))
            && !names.any(|name| ["attach", "vacuum"].contains(&name))
    };
    let version = matches!(known.as_slice(), [word] if word == "--version" || word == "-version");
    let known_options = options_given.iter().all(|option| options.split(' ').any(|one| one == **option));
    version || (known_options && operands.len() > 1 && operands.iter().skip(1).all(plain))
}
