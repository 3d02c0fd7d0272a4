//! The name of a finished upload's file.

/// The largest size of a name, in bytes. File systems have this limit.
const LIMIT: usize = 255;
/// The largest size of an extension that is kept when a name is shortened, in bytes.
const EXTENSION_LIMIT: usize = 32;

/// Makes a name that stays in its directory: not empty, no `/`, no control character, no dot at its start, at most 255
/// bytes. A path is reduced to its last component. Other characters that are not allowed are replaced by `_`. If `told`
/// gives no usable name, the name is `otherwise`.
pub fn safe(told: Option<&[u8]>, otherwise: &str) -> String {
    let told = String::from_utf8_lossy(told.unwrap_or_default());
    let last = told.rsplit(['/', '\\']).next().unwrap_or_default();
    let kept = |c: char| if c.is_control() || is_invisible(c) { '_' } else { c };
    let name: String = last.trim().chars().map(kept).collect();
    let name = name.trim_start_matches(|c: char| c == '.' || c.is_whitespace());
    if name.is_empty() { otherwise.to_owned() } else { cut(name, "") }
}

/// The name with ` (number)` before its extension.
pub fn numbered(name: &str, number: u32) -> String {
    cut(name, &format!(" ({number})"))
}

/// Characters that change the direction of text or have no width. They would make a name look like another one.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// The name with `mark` before its extension, within the limit.
fn cut(name: &str, mark: &str) -> String {
    let (stem, extension) = match name.rfind('.') {
        Some(at) if at > 0 && name.len() - at <= EXTENSION_LIMIT => name.split_at(at),
        _ => (name, ""),
    };
    let room = LIMIT - mark.len() - extension.len();
    let end = (0..=room.min(stem.len())).rev().find(|&at| stem.is_char_boundary(at)).unwrap_or(0);
    format!("{}{mark}{extension}", &stem[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_leave_its_directory() {
        for (told, expected) in [
            ("photo.jpg", "photo.jpg"),
            ("../../etc/passwd", "passwd"),
            ("..\\..\\boot.ini", "boot.ini"),
            ("/", "upload"),
            ("..", "upload"),
            (".", "upload"),
            ("", "upload"),
            ("  ", "upload"),
            (".. .hidden", "hidden"),
            (".wakeai-uploads", "wakeai-uploads"),
            ("a\0b\nc", "a_b_c"),
            ("\u{202e}gpj.exe", "_gpj.exe"),
            ("写真.jpg", "写真.jpg"),
        ] {
            assert_eq!(safe(Some(told.as_bytes()), "upload"), expected, "{told:?}");
        }
        assert_eq!(safe(None, "upload"), "upload");
        assert_eq!(safe(Some(b"\xff\xfe"), "upload"), "\u{fffd}\u{fffd}");
    }

    #[test]
    fn a_long_name_keeps_its_extension_and_whole_characters() {
        let long = format!("{}.jpeg", "写".repeat(200));
        let name = safe(Some(long.as_bytes()), "upload");
        assert!(name.len() <= 255 && name.ends_with("写.jpeg"), "{name}");
        let second = numbered(&name, 2);
        assert!(second.len() <= 255 && second.ends_with("写 (2).jpeg"), "{second}");
        assert_eq!(numbered("a.tar", 3), "a (3).tar");
        assert_eq!(numbered("README", 12), "README (12)");
    }
}
