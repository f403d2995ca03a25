//! Pages that exhaust the stack, the time or the memory of a parser.

/// What the model receives of a page. On a slow machine it may be [`SLOW`] instead.
#[derive(Clone, Copy, Debug)]
pub enum Outcome {
    /// The text of the page.
    Text,
    /// An error with one of these reasons.
    Error(&'static [&'static str]),
}

/// The error of a document that takes too much time.
pub const SLOW: &str = "reading it takes longer than 10 s";

/// A word in each page, after everything else.
pub const WORD: &str = "Findable";

/// Levels of nesting. They exceed the stack of a thread of nuncio many times.
const DEEP: usize = 2_500;
/// Size of the largest pages: what `fetch` reads of a page.
const BYTES: usize = 5 << 20;

/// Repeats a piece until the page is as large as possible.
fn filled(start: &str, piece: &str) -> String {
    format!("{start}{}", piece.repeat((BYTES - start.len()) / piece.len()))
}

/// Nesting that a count of tags in the text does not find.
const NESTED: [(&str, &str, &str); 24] = [
    ("cells in mathml", "<math>", "<td>"),
    ("options in mathml", "<math>", "<option>"),
    ("links in mathml", "<math>", "<link>"),
    ("paragraphs in mathml text", "<math>", "<mi><tr>"),
    ("html in mathml", "<math>", "<annotation-xml encoding=text/html></annotation-xml x><tr>"),
    ("end tags in attributes", "", "<div title='</div>'>"),
    ("end tags in attributes of lists", "", "<ul title='</ul>'><li>"),
    ("end tags in attributes of quotes", "", "<blockquote cite=</blockquote>"),
    ("end tags in comments", "", "<div><!-- </div> -->"),
    ("end tags in odd comments", "", "<div><!x </div><?x </div>"),
    ("end tags in text areas", "", "<div><textarea></div></textarea>"),
    ("end tags in titles", "", "<div><title></div></title>"),
    ("end tags in scripts", "", "<section><script></section></script>"),
    ("end tags in styles", "", "<section><style></section></style>"),
    ("end tags in frames", "", "<div><iframe></div></iframe>"),
    ("end tags in templates", "", "<div><template></div></template>"),
    ("end tags in cdata", "<math>", "<mrow><![CDATA[</mrow>]]>"),
    ("end tags in selects", "", "<div><select></div></select>"),
    ("end tags in tables", "", "<div><table></div></table>"),
    ("end tags in marquees", "", "<div><marquee></div></marquee>"),
    ("formatting", "", "<b><p title='</b>'>"),
    ("formatting that is adopted", "", "<b title='</aside>'><aside></b>"),
    ("names with other characters", "", "<di\u{fc}v></di>"),
    ("names with a null", "", "<div\0></div>"),
];

/// Pages with deep nesting, by their names. Each fits on the stack of the reader.
pub fn nested() -> Vec<(String, String, Outcome)> {
    let page = |(name, start, piece): &(&str, &str, &str)| {
        let text = format!("<!DOCTYPE html>{start}{}{WORD}", piece.repeat(DEEP));
        (format!("{name}, nested"), text, Outcome::Text)
    };
    NESTED.iter().map(page).collect()
}

/// Pages that take too much of something.
pub fn large() -> Vec<(String, String, Outcome)> {
    vec![
        ("stack".into(), filled("<math>", "<td>"), Outcome::Error(&["nested too deeply", "ran out of memory"])),
        // The work and the memory grow together, so the speed of the machine decides.
        ("time".into(), slow(), Outcome::Error(&[SLOW, "ran out of memory"])),
        ("memory".into(), bomb(), Outcome::Error(&["ran out of memory"])),
    ]
}

/// A page that takes longer than a reader may: each element is combined with the first one.
pub fn slow() -> String {
    filled("", "<b>x</b>")
}

/// A page that takes much memory: each paragraph has copies of all open elements.
pub fn bomb() -> String {
    let attributes: String = (0..40).map(|number| format!(" a{number}=1")).collect();
    let fonts: String = (0..1_000).map(|number| format!("<font size={number}{attributes} title='</font>'>")).collect();
    format!("{fonts}{}", "<p>x".repeat(2_000))
}
