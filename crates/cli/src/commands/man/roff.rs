//! The parts of manual pages: requests of man(7), and text that is escaped for use between them.

use std::fmt::Write as _;

/// The first line of a page.
pub(super) fn title(name: &str, section: u8) -> String {
    let version = env!("CARGO_PKG_VERSION");
    format!(".TH \"{}\" \"{section}\" \"\" \"wakeai {version}\" \"Wakeai\"\n", name.to_uppercase())
}

/// The section with references to other pages.
pub(super) fn see_also(pages: &[(String, u8)]) -> String {
    let mut text = ".SH SEE ALSO\n".to_owned();
    for (at, (name, section)) in pages.iter().enumerate() {
        let comma = if at + 1 < pages.len() { "," } else { "" };
        let _ = writeln!(text, ".BR {} ({section}){comma}", name.replace('-', "\\-"));
    }
    text
}

/// Escapes text for roff: `\`, and a `.` or `'` at the start, lose their special meaning.
pub(super) fn plain(text: &str) -> String {
    protected(text.replace('\\', "\\e"))
}

/// A line that roff does not take for a request.
pub(super) fn protected(line: String) -> String {
    if line.starts_with(['.', '\'']) { format!("\\&{line}") } else { line }
}

/// Escapes text that a reader may copy. Its hyphens stay hyphens.
pub(super) fn literal(text: &str) -> String {
    plain(text).replace('-', "\\-").replace('~', "\\(ti").replace('^', "\\(ha")
}

/// Lines that are printed as they are, indented.
pub(super) fn example<'a>(lines: impl IntoIterator<Item = &'a str>) -> String {
    let mut text = ".PP\n.RS 4\n.nf\n".to_owned();
    for line in lines {
        text.push_str(&literal(line));
        text.push('\n');
    }
    text + ".fi\n.RE\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_become_a_request() {
        assert_eq!(plain(".so /etc/passwd"), "\\&.so /etc/passwd");
        assert_eq!(plain("'br"), "\\&'br");
        assert_eq!(plain("a\\fB"), "a\\efB");
        assert_eq!(literal("--json"), "\\-\\-json");
    }
}
