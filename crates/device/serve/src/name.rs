//! The name of a finished upload's file.

use wakeai_tus::Metadata;

use super::request::Id;

/// The largest size of a name, in bytes. File systems have this limit.
const LIMIT: usize = 255;
/// The largest size of a name on eCryptfs, which has the shortest ones of the file systems in use, with room for a number.
const SHORT_LIMIT: usize = 130;
/// The largest size of an extension that is kept when a name is shortened, in bytes.
const EXTENSION_LIMIT: usize = 32;

/// The name that an upload's file gets, unless another file has it.
pub(super) fn wanted(id: Id, metadata: &Metadata) -> String {
    let given = metadata.get("filename").or_else(|| metadata.get("name"));
    safe(given, &format!("upload-{id}"))
}

/// Makes a name that stays in its directory: not empty, no `/`, no control character, no dot at its start, at most 255
/// bytes. A path is reduced to its last component. Other characters that are not allowed are replaced by `_`. If `given`
/// gives no usable name, the name is `otherwise`.
pub fn safe(given: Option<&[u8]>, otherwise: &str) -> String {
    let given = String::from_utf8_lossy(given.unwrap_or_default());
    let last = given.rsplit(['/', '\\']).next().unwrap_or_default();
    let kept = |c: char| if c.is_control() || is_invisible(c) { '_' } else { c };
    let name: String = last.trim().chars().map(kept).collect();
    let name = name.trim_start_matches(|c: char| c == '.' || c.is_whitespace());
    if name.is_empty() { otherwise.to_owned() } else { cut(name, "") }
}

/// The names under which a file system may take a file, in the order in which they are tried: `name`; without what Windows'
/// file systems refuse; shorter, for file systems with longer names of their own, such as eCryptfs; in ASCII; and at last
/// `otherwise`, which every file system takes. No name comes twice.
pub(super) fn alternatives(name: &str, otherwise: &str) -> Vec<String> {
    let portable = portable(name);
    let short = cut_to(SHORT_LIMIT, &portable, "");
    let plain = |c: char| if c.is_ascii() { c } else { '_' };
    let ascii = cut_to(SHORT_LIMIT, &portable.chars().map(plain).collect::<String>(), "");
    let mut names: Vec<String> = Vec::new();
    for name in [name.to_owned(), portable, short, ascii, otherwise.to_owned()] {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// The name without the characters, the ends and the names of devices that Windows does not allow
/// (<https://learn.microsoft.com/windows/win32/fileio/naming-a-file>).
fn portable(name: &str) -> String {
    let kept = |c: char| if "<>:\"|?*\\".contains(c) { '_' } else { c };
    let mut portable: String = name.chars().map(kept).collect();
    if portable.ends_with(['.', ' ']) {
        portable.pop();
        portable.push('_');
    }
    let stem = portable.split('.').next().unwrap_or_default().trim_end().to_ascii_uppercase();
    let is_port = |name: &str| {
        let digit = stem.strip_prefix(name).and_then(|rest| rest.chars().next());
        stem.chars().count() == 4 && digit.is_some_and(char::is_numeric)
    };
    let is_device = ["CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"].contains(&stem.as_str());
    if is_device || is_port("COM") || is_port("LPT") {
        cut(&format!("_{portable}"), "")
    } else {
        portable
    }
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
    cut_to(LIMIT, name, mark)
}

fn cut_to(limit: usize, name: &str, mark: &str) -> String {
    let (stem, extension) = match name.rfind('.') {
        Some(at) if at > 0 && name.len() - at <= EXTENSION_LIMIT => name.split_at(at),
        _ => (name, ""),
    };
    let room = limit - mark.len() - extension.len();
    let end = (0..=room.min(stem.len())).rev().find(|&at| stem.is_char_boundary(at)).unwrap_or(0);
    format!("{}{mark}{extension}", &stem[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_leave_its_directory() {
        for (given, expected) in [
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
            assert_eq!(safe(Some(given.as_bytes()), "upload"), expected, "{given:?}");
        }
        assert_eq!(safe(None, "upload"), "upload");
        assert_eq!(safe(Some(b"\xff\xfe"), "upload"), "\u{fffd}\u{fffd}");
    }

    #[test]
    fn a_name_that_a_file_system_refuses_has_alternatives_that_end_in_one_that_all_take() {
        for (name, second) in [
            ("VID 12:30.mp4", "VID 12_30.mp4"),
            ("what?", "what_"),
            ("a\"b|c<d>e*f", "a_b_c_d_e_f"),
            ("dots...", "dots.._"),
            ("con", "_con"),
            ("AUX.tar.gz", "_AUX.tar.gz"),
            ("lpt1.txt", "_lpt1.txt"),
            ("com\u{b9}", "_com\u{b9}"),
        ] {
            let names = alternatives(name, "upload-7");
            assert_eq!((names[0].as_str(), names[1].as_str()), (name, second));
            assert_eq!(names.last().unwrap(), "upload-7");
        }
        assert_eq!(alternatives("com10.txt", "u"), ["com10.txt", "u"]);
        assert_eq!(alternatives("写.jpg", "u"), ["写.jpg", "_.jpg", "u"]);
        let long = format!("{}.jpeg", "写".repeat(80));
        let names = alternatives(&long, "u");
        assert!(names[1].len() <= SHORT_LIMIT && names[1].ends_with("写.jpeg"), "{names:?}");
        assert!(names[2].is_ascii() && names[2].ends_with("_.jpeg"), "{names:?}");
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
