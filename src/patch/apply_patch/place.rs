//! Where the hunks of a patch belong in a file, and what the file is after them.
//!
//! A hunk belongs where its old lines are, found as by an edit: literally, else without their blanks, else as a block of like
//! lines. Of several places those count that its hints (`@@ context`, line number, end of file) point to. The hunks of a file
//! stand in its order; there must be one way only to give all of them a place.

use std::ops::Range;

use super::{Hunk, HunkLine, Sign};
use crate::patch::block::pairs;
use crate::patch::indentation::{Adoption, Style};
use crate::patch::lines::{Lines, MARK, indented, trim, words};
use crate::patch::locate::{Strategy, single_out};
use crate::patch::nearest::nearest;
use crate::patch::refusal::numbers;
use crate::patch::splice::{LineChange, Splice, splice};

/// A content after a patch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patched {
    pub bytes: Vec<u8>,
    /// The first line that changes, from 1.
    pub line: Option<usize>,
}

/// The content after `hunks`. The error says which hunk has no place, or more than one, and what to do.
pub fn apply(content: &[u8], hunks: &[Hunk]) -> Result<Patched, String> {
    let lines = Lines::of(content);
    let olds: Vec<Vec<&[u8]>> = hunks.iter().map(old_lines).collect();
    let name = |index: usize| if hunks.len() == 1 { "the hunk".to_owned() } else { format!("hunk {}", index + 1) };
    let mut candidates = Vec::new();
    // How many lines the hunk before was off.
    let mut drift = 0;
    for (index, (hunk, old)) in hunks.iter().zip(&olds).enumerate() {
        let found = find(&lines, hunk, old, drift).map_err(|why| format!("{} {why}", name(index)))?;
        if let ([only], Some(said)) = (found.places.as_slice(), hunk.line) {
            drift = only.start as isize - before(said, old);
        }
        candidates.push(found);
    }
    let places = in_order(&candidates).map_err(|index| {
        let starts: Vec<usize> = candidates[index].places.iter().map(|place| place.start + 1).collect();
        match starts.as_slice() {
            [only] => format!("{} fits at line {only} only, which is before the hunk that precedes it or in it", name(index)),
            _ => format!(
                "{} fits {} places, at lines {}; add lines around it, or an `@@ line` that stands before it",
                name(index),
                starts.len(),
                numbers(&starts)
            ),
        }
    })?;
    let style = Style::of(&lines);
    let splices: Vec<Splice> = (hunks.iter().zip(&olds).zip(&candidates).zip(&places))
        .map(|(((hunk, old), found), place)| Splice {
            at: place.start,
            changes: changes(&lines, hunk, old, found, place, &style),
            terminated: hunk.terminated,
        })
        .collect();
    let unchanged = |hunk: &Hunk| hunk.lines.iter().take_while(|line| line.sign == Sign::Keep).count();
    let line = hunks.first().zip(places.first()).map(|(hunk, place)| place.start + unchanged(hunk) + 1);
    Ok(Patched { bytes: splice(&lines, &splices), line })
}

/// Without the `\r` of their endings, which never count.
fn old_lines(hunk: &Hunk) -> Vec<&[u8]> {
    let old = hunk.lines.iter().filter(|line| line.sign != Sign::Add);
    let mut old: Vec<&[u8]> = old.map(|line| without_ending(line).as_bytes()).collect();
    unmark(&mut old);
    old
}

/// A byte order mark is no part of a line.
fn unmark(lines: &mut [&[u8]]) {
    if let Some(first) = lines.first_mut() {
        *first = first.strip_prefix(MARK).unwrap_or(first);
    }
}

fn without_ending(line: &HunkLine) -> &str {
    if line.unterminated { &line.text } else { line.text.strip_suffix('\r').unwrap_or(&line.text) }
}

/// The index of the line that a head speaks of; a hunk without old lines comes after it.
fn before(said: usize, old: &[&[u8]]) -> isize {
    said as isize - isize::from(!old.is_empty())
}

struct Found {
    strategy: Strategy,
    /// One or more, ascending.
    places: Vec<Range<usize>>,
}

fn find(lines: &Lines<'_>, hunk: &Hunk, old: &[&[u8]], drift: isize) -> Result<Found, String> {
    let scopes = scopes(lines, &hunk.contexts)?;
    if old.is_empty() {
        let after: Vec<usize> = match (hunk.line, scopes.is_empty()) {
            (Some(said), _) if said <= lines.count() => vec![said],
            (Some(said), _) => return Err(format!("comes after line {said}, but the file has {} lines", lines.count())),
            (None, true) => vec![lines.count()],
            (None, false) => scopes.iter().map(|scope| scope.start).collect(),
        };
        return Ok(Found { strategy: Strategy::Exact, places: after.into_iter().map(|line| line..line).collect() });
    }
    for strategy in [Strategy::Exact, Strategy::LineTrimmed, Strategy::WhitespaceNormalized, Strategy::BlockAnchor] {
        let mut places = strategy.places(lines, old);
        places.retain(|place| {
            place.len() == old.len() && (strategy != Strategy::BlockAnchor || line_for_line(lines, hunk, old, place))
        });
        if places.is_empty() {
            continue;
        }
        if !scopes.is_empty() {
            places = in_scope(places, &scopes);
            if places.is_empty() {
                return Err("is not found after its @@ line; give another one, or none".into());
            }
        }
        if hunk.at_end {
            prefer(&mut places, |place| place.end == lines.count());
        }
        if let Some(said) = hunk.line {
            prefer(&mut places, |place| place.start as isize == before(said, old) + drift);
            prefer(&mut places, |place| place.start as isize == before(said, old));
        }
        if strategy != Strategy::Exact && places.len() > 1 {
            let alike = single_out(lines, old, places.clone());
            if alike.len() == 1 {
                return Ok(Found { strategy: Strategy::IndentationFlexible, places: alike });
            }
        }
        return Ok(Found { strategy, places });
    }
    let otherwise = "read the file and make the patch anew";
    let why = nearest(lines, old).map_or_else(|| otherwise.to_owned(), |nearest| nearest.message("the patch", otherwise));
    Err(format!("was not found; {why}"))
}

/// Whether each old line of a hunk is its line of the place, or like it, and those that go are the same but for blanks.
fn line_for_line(lines: &Lines<'_>, hunk: &Hunk, old: &[&[u8]], place: &Range<usize>) -> bool {
    let there: Vec<&[u8]> = lines.texts(place.clone()).collect();
    let signs = hunk.lines.iter().map(|line| line.sign).filter(|sign| *sign != Sign::Add);
    let mut all = signs.zip(old).zip(&there);
    all.all(|((sign, old), there)| sign == Sign::Keep || words(old).eq(words(there)))
        && pairs(old, &there).iter().enumerate().all(|(index, line)| *line == Some(index))
}

/// Leaves those for which `best` holds, if there are any.
fn prefer(places: &mut Vec<Range<usize>>, best: impl Fn(&Range<usize>) -> bool) {
    if places.iter().any(&best) {
        places.retain(best);
    }
}

/// What the last of the context lines may be about: the lines after it that are indented more. None without contexts.
fn scopes(lines: &Lines<'_>, contexts: &[String]) -> Result<Vec<Range<usize>>, String> {
    let mut starts: Option<Vec<usize>> = None;
    for context in contexts {
        let wanted = context.as_bytes();
        let all = || 0..lines.count();
        let mut found: Vec<usize> = all().filter(|line| trim(lines.text(*line)) == trim(wanted)).collect();
        if found.is_empty() {
            found = all().filter(|line| words(lines.text(*line)).eq(words(wanted))).collect();
        }
        let after = |start: &usize| found.iter().copied().find(|line| line >= start);
        let mut next: Vec<usize> = match &starts {
            None => found.iter().map(|line| line + 1).collect(),
            Some(starts) => starts.iter().filter_map(after).map(|line| line + 1).collect(),
        };
        next.dedup();
        if next.is_empty() {
            return Err(format!("has an @@ line that is not in the file: `{}`", context.trim()));
        }
        starts = Some(next);
    }
    let deep = |line: usize| indented(lines.text(line)).0.len();
    let end = |start: usize| {
        let shallow = |line: &usize| !trim(lines.text(*line)).is_empty() && deep(*line) <= deep(start - 1);
        (start..lines.count()).find(shallow).unwrap_or(lines.count())
    };
    Ok(starts.unwrap_or_default().into_iter().map(|start| start..end(start)).collect())
}

/// Those inside a scope; else those after the first context line; else those that begin with it.
fn in_scope(places: Vec<Range<usize>>, scopes: &[Range<usize>]) -> Vec<Range<usize>> {
    let Some(first) = scopes.first() else { return places };
    let inside = |place: &Range<usize>| scopes.iter().any(|scope| scope.contains(&place.start));
    let after = |place: &Range<usize>| place.start >= first.start;
    let own = |place: &Range<usize>| scopes.iter().any(|scope| place.start + 1 == scope.start);
    let of = |fits: &dyn Fn(&Range<usize>) -> bool| places.iter().filter(|place| fits(place)).cloned().collect::<Vec<_>>();
    [of(&inside), of(&after), of(&own)].into_iter().find(|some| !some.is_empty()).unwrap_or_default()
}

/// The one way to take a place of each, one after the other. The error is the hunk that has none, or another one.
fn in_order(candidates: &[Found]) -> Result<Vec<Range<usize>>, usize> {
    let mut earliest = Vec::new();
    let mut end = 0;
    for (index, found) in candidates.iter().enumerate() {
        let place = found.places.iter().find(|place| place.start >= end).ok_or(index)?;
        end = place.end;
        earliest.push(place.clone());
    }
    let mut start = usize::MAX;
    for (index, found) in candidates.iter().enumerate().rev() {
        let latest = found.places.iter().rev().find(|place| place.end <= start).ok_or(index)?;
        if *latest != earliest[index] {
            return Err(index);
        }
        start = latest.start;
    }
    Ok(earliest)
}

fn changes(lines: &Lines<'_>, hunk: &Hunk, old: &[&[u8]], found: &Found, place: &Range<usize>, style: &Style) -> Vec<LineChange> {
    let literal = shows_endings(lines, hunk, place);
    let ending = |line: &HunkLine| if is_crlf(line) { b"\r\n".as_slice() } else { b"\n" };
    let added = |line: &&HunkLine| line.sign == Sign::Add;
    let mut new: Vec<&[u8]> = hunk.lines.iter().filter(added).map(|line| without_ending(line).as_bytes()).collect();
    let begins_new = hunk.lines.iter().find(|line| line.sign != Sign::Remove).is_some_and(|line| line.sign == Sign::Add);
    if begins_new && place.start == 0 && lines.content().starts_with(MARK) {
        unmark(&mut new);
    }
    let adoption = (found.strategy != Strategy::Exact).then(|| Adoption::new(old, &new, lines, place.clone(), style));
    let mut new = new.into_iter();
    // The next old line, and the one whose place the next new one takes, if it is before that.
    let (mut next, mut replaced) = (0_usize, 0);
    let change = |line: &HunkLine| match line.sign {
        Sign::Keep => {
            next += 1;
            replaced = next;
            LineChange::Keep
        }
        Sign::Remove => {
            next += 1;
            LineChange::Remove
        }
        Sign::Add => {
            let text = new.next().unwrap_or_default();
            let index = replaced.min(next.saturating_sub(1));
            replaced = (replaced + 1).min(next);
            let text = adoption.as_ref().map_or_else(|| text.to_vec(), |adoption| adoption.adopt(text, index));
            LineChange::Add { text, ending: literal.then(|| ending(line)) }
        }
    };
    hunk.lines.iter().map(change).collect()
}

fn is_crlf(line: &HunkLine) -> bool {
    without_ending(line).len() < line.text.len()
}

/// Whether a hunk with a `\r` tells the ending of each of its lines: those that are in the file have the one that is told.
fn shows_endings(lines: &Lines<'_>, hunk: &Hunk, place: &Range<usize>) -> bool {
    let old = hunk.lines.iter().filter(|line| line.sign != Sign::Add);
    let same = |(line, number): (&HunkLine, usize)| {
        let whole = lines.whole(number);
        line.unterminated || !whole.ends_with(b"\n") || whole.ends_with(b"\r\n") == is_crlf(line)
    };
    hunk.lines.iter().any(is_crlf) && old.zip(place.clone()).all(same)
}
