//! The parts of the text of a session's note: a label, then a paragraph or a list.

use anamnesis_text::statement::sentences;

/// Splits a line of a session's note that begins with the label of a part: `**Files:** a.rs`. The text
/// is empty before a list.
pub fn labelled(line: &str) -> Option<(&str, &str)> {
    let (label, text) = line.strip_prefix("**")?.split_once(":**")?;
    (!label.contains('*')).then_some((label, text.trim()))
}

/// Returns the lines of a session's note with the labels of their parts: a paragraph behind its label, the
/// items of a list, and lines without a label.
pub fn labelled_lines(body: &str) -> impl Iterator<Item = (Option<&str>, &str)> {
    let mut list = None;
    let lines = body.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.filter_map(move |line| {
        if let Some((label, text)) = labelled(line) {
            list = Some(label).filter(|_| text.is_empty());
            return (!text.is_empty()).then_some((Some(label), text));
        }
        let item = line.strip_prefix("- ");
        list = list.filter(|_| item.is_some());
        Some((list, item.unwrap_or(line)))
    })
}

/// Returns the lines of a part of a session's note, such as `Files`: one paragraph, or a list.
pub fn part_of<'a>(body: &'a str, label: &str) -> impl Iterator<Item = &'a str> {
    let mut lines = body.lines();
    // A session start asks for some parts of many notes, so no other label is read.
    let behind = |line: &'a str| {
        line.strip_prefix("**")?
            .strip_prefix(label)?
            .strip_prefix(":**")
    };
    let paragraph = lines.find_map(|line| behind(line.trim())).map(str::trim);
    let paragraph = paragraph.filter(|text| !text.is_empty());
    let list = lines.map_while(|line| line.strip_prefix("- "));
    paragraph
        .into_iter()
        .chain(list)
        .filter(|line| !line.is_empty())
}

/// Returns the whole sentence of the person that the title of a session's note begins, if the title was
/// cut off.
pub fn sentence_of_title(body: &str, title: &str) -> Option<String> {
    let begun = title.strip_suffix(" …")?;
    let mut said = part_of(body, "Said").chain(part_of(body, "Ask"));
    let rest = said.find_map(|line| Some(line.split_once(begun)?.1))?;
    sentences(&format!("{begun}{rest}"))
        .next()
        .map(str::to_owned)
}
