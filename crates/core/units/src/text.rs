//! Text from outside: names that programs and peers choose for themselves, and small files that a
//! person has written with any editor.

/// The text without what steers a terminal or changes how the text around it looks: control
/// characters, characters that change the direction of text (UAX #9), and characters without width.
pub fn visible(text: &str) -> String {
    text.chars().filter(|character| is_visible(*character)).collect()
}

/// Whether a terminal shows the character where it stands.
pub fn is_visible(character: char) -> bool {
    !character.is_control() && !is_format(character)
}

/// Whether the character has no width of its own, or changes the direction or the shape of its
/// neighbours (general category Cf, and the separators of lines and paragraphs). Emoji are joined and
/// Indic and Arabic letters are separated by U+200C and U+200D; a name loses them, too.
fn is_format(character: char) -> bool {
    matches!(
        character,
        '\u{ad}'
            | '\u{600}'..='\u{605}'
            | '\u{61c}'
            | '\u{6dd}'
            | '\u{70f}'
            | '\u{890}'..='\u{891}'
            | '\u{8e2}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{110bd}'
            | '\u{110cd}'
            | '\u{13430}'..='\u{1343f}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0001}'
            | '\u{e0020}'..='\u{e007f}'
    )
}

/// The text of a file without the byte order mark (U+FEFF) that some editors put at its start.
pub fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// As [`without_mark`], for the bytes of a file in UTF-8 or ASCII.
pub fn bytes_without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_a_terminal_or_turns_text_around_is_taken_out() {
        for (text, shown) in [
            ("curl", "curl"),
            ("a\u{1b}[2Jb\r\n\u{7f}\u{9b}", "a[2Jb"),
            ("\u{202e}gpj.exe\u{202c}", "gpj.exe"),
            ("a\u{2066}b\u{2069}\u{200e}\u{200f}\u{61c}", "ab"),
            ("one\u{200b}\u{feff}\u{2060}\u{ad}two\u{2028}\u{2029}", "onetwo"),
            ("tag\u{e0041}\u{e007f}", "tag"),
            ("写真 é ñ עברית", "写真 é ñ עברית"),
        ] {
            assert_eq!(visible(text), shown, "{}", text.escape_unicode());
        }
    }

    #[test]
    fn only_a_mark_at_the_start_is_one() {
        assert_eq!(without_mark("\u{feff}key"), "key");
        assert_eq!(without_mark("ke\u{feff}y"), "ke\u{feff}y");
        assert_eq!(bytes_without_mark(b"\xef\xbb\xbf-----BEGIN"), b"-----BEGIN");
        assert_eq!(bytes_without_mark(b"-----BEGIN"), b"-----BEGIN");
    }
}
