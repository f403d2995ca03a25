//! Finds the position of each hunk in a file and applies the hunks.
//!
//! The old lines of a hunk are matched as in an edit: exactly, else with tolerance for whitespace,
//! else as a block of similar lines. If there are several matches, hints (`@@ context`, line
//! number, end of file) select among them. Hunks must be in file order, and there must be exactly
//! one way to assign a match to every hunk.

use std::ops::Range;

use super::hunk::{Hunk, HunkLine, Sign};
use crate::patch::block::align;
use crate::patch::edit_error::numbers;
use crate::patch::indentation::{IndentationStyle, Reindenter};
use crate::patch::lines::{Lines, MARK, indented, trim, words};
use crate::patch::locate::{Strategy, with_same_shape};
use crate::patch::look_alike::carry_lines;
use crate::patch::nearest::nearest;
use crate::patch::pasted_numbers;
use crate::patch::splice::{LineChange, Splice, splice};

/// The result of applying hunks to a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatchOutcome {
    /// The new content.
    pub bytes: Vec<u8>,
    /// The first changed line, from 1; `None` without hunks.
    pub line: Option<usize>,
}

/// Applies `hunks` to `content`. The error message names the hunk that has no match or several
/// matches, and tells the model what to do next. If hunks have no match and their lines have the
/// line numbers of `read`, these are left out.
pub fn apply(content: &[u8], hunks: &[Hunk]) -> Result<PatchOutcome, String> {
    apply_as_written(content, hunks).or_else(|why| {
        let plain: Vec<Hunk> = hunks.iter().map(|hunk| without_numbers(hunk).unwrap_or_else(|| hunk.clone())).collect();
        if plain == hunks { Err(why) } else { apply_as_written(content, &plain).map_err(|_| why) }
    })
}

/// Returns a hunk without the line numbers of its old lines, and of its new ones if all have them.
fn without_numbers(hunk: &Hunk) -> Option<Hunk> {
    let text = |is_old: bool| -> String {
        let lines = hunk.lines.iter().filter(|line| (line.sign != Sign::Add) == is_old);
        lines.map(|line| format!("{}\n", line.text)).collect()
    };
    let (old, added) = (text(true), text(false));
    let (old, added) = (pasted_numbers::without_numbers(&old)?, pasted_numbers::replacement(&added)?);
    let (mut old, mut added) = (old.split_terminator('\n'), added.split_terminator('\n'));
    let mut plain = hunk.clone();
    for line in &mut plain.lines {
        line.text = if line.sign == Sign::Add { added.next()? } else { old.next()? }.to_owned();
    }
    Some(plain)
}

fn apply_as_written(content: &[u8], hunks: &[Hunk]) -> Result<PatchOutcome, String> {
    let lines = Lines::new(content);
    let olds: Vec<Vec<&[u8]>> = hunks.iter().map(old_lines).collect();
    let name = |index: usize| if hunks.len() == 1 { "the hunk".to_owned() } else { format!("hunk {}", index + 1) };
    let mut candidates = Vec::new();
    // Difference between the actual line of an earlier hunk and the line number in the header of
    // that hunk.
    let mut drift = 0;
    for (index, (hunk, old)) in hunks.iter().zip(&olds).enumerate() {
        let found = find(&lines, hunk, old, drift).map_err(|why| format!("{} {why}", name(index)))?;
        if let ([only], Some(line)) = (found.places.as_slice(), hunk.line) {
            drift = only.start as isize - start_index(line, old);
        }
        candidates.push(found);
    }
    let places = in_order(&candidates).map_err(|index| {
        let starts: Vec<usize> = candidates[index].places.iter().map(|place| place.start + 1).collect();
        match starts.as_slice() {
            [only] => format!("{} matches only at line {only}, which is before or inside the previous hunk", name(index)),
            _ => format!(
                "{} matches {} places, at lines {}; add lines around it, or an `@@ line` with a line that precedes it",
                name(index),
                starts.len(),
                numbers(&starts)
            ),
        }
    })?;
    let style = IndentationStyle::from_lines(&lines);
    let splices: Vec<Splice> = (hunks.iter().zip(&olds).zip(&candidates).zip(&places))
        .map(|(((hunk, old), found), place)| Splice {
            at: place.start,
            changes: changes(&lines, hunk, old, found, place, &style),
            terminated: hunk.terminated,
        })
        .collect();
    let unchanged = |hunk: &Hunk| hunk.lines.iter().take_while(|line| line.sign == Sign::Keep).count();
    let line = hunks.first().zip(places.first()).map(|(hunk, place)| place.start + unchanged(hunk) + 1);
    Ok(PatchOutcome { bytes: splice(&lines, &splices), line })
}

/// Returns the kept and removed lines of a hunk, without the `\r` of a line ending and without a
/// byte order mark.
fn old_lines(hunk: &Hunk) -> Vec<&[u8]> {
    let old = hunk.lines.iter().filter(|line| line.sign != Sign::Add);
    let mut old: Vec<&[u8]> = old.map(|line| without_ending(line).as_bytes()).collect();
    unmark(&mut old);
    old
}

/// Removes a byte order mark from the first line.
fn unmark(lines: &mut [&[u8]]) {
    if let Some(first) = lines.first_mut() {
        *first = first.strip_prefix(MARK).unwrap_or(first);
    }
}

fn without_ending(line: &HunkLine) -> &str {
    if line.unterminated { &line.text } else { line.text.strip_suffix('\r').unwrap_or(&line.text) }
}

/// Returns the index of the first line of a hunk whose header contains the line number `line`. A
/// hunk without old lines starts after that line.
fn start_index(line: usize, old: &[&[u8]]) -> isize {
    line as isize - isize::from(!old.is_empty())
}

/// The matches of one hunk.
struct Candidates {
    strategy: Strategy,
    /// Line ranges, ascending; at least one.
    places: Vec<Range<usize>>,
}

/// Finds the matches of a hunk and narrows them down by the hints of the hunk. `drift` is added to
/// the hunk's line number.
fn find(lines: &Lines<'_>, hunk: &Hunk, old: &[&[u8]], drift: isize) -> Result<Candidates, String> {
    let scopes = scopes(lines, &hunk.contexts)?;
    if old.is_empty() {
        let after: Vec<usize> = match (hunk.line, scopes.is_empty()) {
            (Some(line), _) if line <= lines.count() => vec![line],
            (Some(line), _) => return Err(format!("follows line {line}, but the file has {} lines", lines.count())),
            (None, true) => vec![lines.count()],
            (None, false) => scopes.iter().map(|scope| scope.start).collect(),
        };
        return Ok(Candidates { strategy: Strategy::Exact, places: after.into_iter().map(|line| line..line).collect() });
    }
    let strategies =
        [Strategy::Exact, Strategy::LineTrimmed, Strategy::WhitespaceNormalized, Strategy::LookAlike, Strategy::BlockAnchor];
    for strategy in strategies {
        let mut places = strategy.find_all(lines, old);
        places.retain(|place| {
            place.len() == old.len() && (strategy != Strategy::BlockAnchor || aligns_line_by_line(lines, hunk, old, place))
        });
        if places.is_empty() {
            continue;
        }
        if !scopes.is_empty() {
            places = in_scope(places, &scopes);
            if places.is_empty() {
                return Err("was not found after its @@ line; use another @@ line, or omit it".into());
            }
        }
        if hunk.at_end {
            prefer(&mut places, |place| place.end == lines.count());
        }
        if let Some(line) = hunk.line {
            prefer(&mut places, |place| place.start as isize == start_index(line, old) + drift);
            prefer(&mut places, |place| place.start as isize == start_index(line, old));
        }
        if strategy != Strategy::Exact && places.len() > 1 {
            let alike = with_same_shape(lines, old, places.clone());
            if alike.len() == 1 {
                return Ok(Candidates { strategy: Strategy::IndentationFlexible, places: alike });
            }
        }
        return Ok(Candidates { strategy, places });
    }
    let otherwise = "read the file and write the patch again";
    let why = nearest(lines, old).map_or_else(|| otherwise.to_owned(), |nearest| nearest.message("the patch", otherwise));
    Err(format!("was not found; {why}"))
}

/// Returns true if each old line corresponds to the line with the same index in `place`, and each
/// removed line differs from its counterpart only in whitespace.
fn aligns_line_by_line(lines: &Lines<'_>, hunk: &Hunk, old: &[&[u8]], place: &Range<usize>) -> bool {
    let there: Vec<&[u8]> = lines.texts(place.clone()).collect();
    let signs = hunk.lines.iter().map(|line| line.sign).filter(|sign| *sign != Sign::Add);
    let mut all = signs.zip(old).zip(&there);
    all.all(|((sign, old), there)| sign == Sign::Keep || words(old).eq(words(there)))
        && align(old, &there).iter().enumerate().all(|(index, line)| *line == Some(index))
}

/// Keeps only the places for which `best` returns true, if there are any such places.
fn prefer(places: &mut Vec<Range<usize>>, best: impl Fn(&Range<usize>) -> bool) {
    if places.iter().any(&best) {
        places.retain(best);
    }
}

/// Returns the line ranges that the last context line may introduce: after each match of the
/// context line, the lines with deeper indentation. Empty if there are no context lines.
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

/// Selects the places inside a scope. If there are none, selects the places after the first context
/// line, and if there are none of these either, the places that start with a context line.
fn in_scope(places: Vec<Range<usize>>, scopes: &[Range<usize>]) -> Vec<Range<usize>> {
    let Some(first) = scopes.first() else { return places };
    let inside = |place: &Range<usize>| scopes.iter().any(|scope| scope.contains(&place.start));
    let after = |place: &Range<usize>| place.start >= first.start;
    let at_context = |place: &Range<usize>| scopes.iter().any(|scope| place.start + 1 == scope.start);
    let matching = |fits: &dyn Fn(&Range<usize>) -> bool| places.iter().filter(|place| fits(place)).cloned().collect::<Vec<_>>();
    [matching(&inside), matching(&after), matching(&at_context)].into_iter().find(|some| !some.is_empty()).unwrap_or_default()
}

/// Chooses one place per hunk so that the places are in ascending order. Fails unless there is
/// exactly one such choice; the error is the index of a hunk with no possible place or with
/// several.
fn in_order(candidates: &[Candidates]) -> Result<Vec<Range<usize>>, usize> {
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

/// Returns the line changes that a hunk makes at `place`.
fn changes(
    lines: &Lines<'_>,
    hunk: &Hunk,
    old: &[&[u8]],
    found: &Candidates,
    place: &Range<usize>,
    style: &IndentationStyle,
) -> Vec<LineChange> {
    let literal = shows_endings(lines, hunk, place);
    let ending = |line: &HunkLine| if is_crlf(line) { b"\r\n".as_slice() } else { b"\n" };
    let added = |line: &&HunkLine| line.sign == Sign::Add;
    let mut new: Vec<&[u8]> = hunk.lines.iter().filter(added).map(|line| without_ending(line).as_bytes()).collect();
    let begins_new = hunk.lines.iter().find(|line| line.sign != Sign::Remove).is_some_and(|line| line.sign == Sign::Add);
    if begins_new && place.start == 0 && lines.content.starts_with(MARK) {
        unmark(&mut new);
    }
    let carried = carried(lines, hunk, old, &new, place);
    let new: Vec<&[u8]> =
        new.iter().zip(&carried).map(|(new, carried)| carried.as_ref().map_or(*new, |text| text.as_bytes())).collect();
    let reindenter = (found.strategy != Strategy::Exact).then(|| Reindenter::new(old, &new, lines, place.clone(), style));
    let mut new = new.into_iter();
    // `next` is the index of the next old line. If `replaced` is smaller, it is the index of the
    // removed line that the next added line replaces.
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
            let text = reindenter.as_ref().map_or_else(|| text.to_vec(), |reindenter| reindenter.reindent(text, index));
            LineChange::Add { text, ending: literal.then(|| ending(line)) }
        }
    };
    hunk.lines.iter().map(change).collect()
}

/// Returns the added lines `new` of a hunk, of which each group replaces lines that look like the
/// hunk's removed lines: with the characters of the file. `None` stands for a line without change.
fn carried(lines: &Lines<'_>, hunk: &Hunk, old: &[&[u8]], new: &[&[u8]], place: &Range<usize>) -> Vec<Option<String>> {
    let found: Vec<&[u8]> = lines.texts(place.clone()).collect();
    let mut texts = vec![None; new.len()];
    let (mut next_old, mut next_new) = (0, 0);
    for group in hunk.lines.chunk_by(|one, other| (one.sign == Sign::Keep) == (other.sign == Sign::Keep)) {
        let count = |sign: Sign| group.iter().filter(|line| line.sign == sign).count();
        let (removed, added) =
            (next_old..next_old + count(Sign::Keep) + count(Sign::Remove), next_new..next_new + count(Sign::Add));
        (next_old, next_new) = (removed.end, added.end);
        let Some(there) = found.get(removed.clone()).filter(|_| !added.is_empty() && !removed.is_empty()) else { continue };
        if let Some((_, lines)) =
            carry_lines(&old[removed], &new[added.clone()], there).filter(|(_, lines)| lines.len() == added.len())
        {
            texts[added].iter_mut().zip(lines).for_each(|(text, line)| *text = Some(line));
        }
    }
    texts
}

fn is_crlf(line: &HunkLine) -> bool {
    without_ending(line).len() < line.text.len()
}

/// Returns true if the `\r` characters in a hunk are part of line endings. This is the case if all
/// old lines have the same endings as the corresponding lines of the file.
fn shows_endings(lines: &Lines<'_>, hunk: &Hunk, place: &Range<usize>) -> bool {
    let old = hunk.lines.iter().filter(|line| line.sign != Sign::Add);
    let same = |(line, number): (&HunkLine, usize)| {
        let whole = lines.whole(number);
        line.unterminated || !whole.ends_with(b"\n") || whole.ends_with(b"\r\n") == is_crlf(line)
    };
    hunk.lines.iter().any(is_crlf) && old.zip(place.clone()).all(same)
}
