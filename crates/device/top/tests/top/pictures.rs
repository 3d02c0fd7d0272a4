//! The guide's pictures show what a terminal shows. With `WAKEAI_WRITE_PICTURES=1` the test writes them again.

use std::fmt::Write as _;
use std::path::Path;

use wakeai_top::{Page, View};

use crate::support::{LARGE, SMALL, live, minute, terminal};

/// The size of a character in the picture.
const WIDTH: usize = 8;
const HEIGHT: usize = 17;

/// The screen of a terminal as a picture.
fn picture(parser: &vt100::Parser, title: &str) -> String {
    let screen = parser.screen();
    let (rows, columns) = screen.size();
    let (rows, columns) = (rows.get(), columns.get());
    let (wide, high) = (usize::from(columns) * WIDTH + 16, usize::from(rows) * HEIGHT + 16);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {wide} {high}\" role=\"img\" \
         font-family=\"DejaVu Sans Mono, Menlo, Consolas, monospace\" font-size=\"13\">\n\
         <title>{title}</title>\n<rect width=\"{wide}\" height=\"{high}\" rx=\"6\" fill=\"#fff\" stroke=\"#888\"/>\n"
    );
    for row in 0..rows {
        // Adjacent characters of the same style form one text element.
        let mut column = 0;
        while column < columns {
            let style = |column| {
                screen
                    .cell(row, column)
                    .map_or((false, false), |cell| (cell.bold(), cell.inverse()))
            };
            let (first, present) = (column, style(column));
            let mut text = String::new();
            while column < columns && style(column) == present {
                let contents = screen.cell(row, column).map_or("", vt100::Cell::contents);
                text.push_str(if contents.is_empty() { " " } else { contents });
                column += 1;
            }
            write_text(&mut svg, &text, usize::from(row), usize::from(first), present);
        }
    }
    svg + "</svg>\n"
}

fn write_text(svg: &mut String, text: &str, row: usize, column: usize, style: (bool, bool)) {
    let (bold, inverse) = style;
    let length = text.chars().count() * WIDTH;
    let (left, top) = (8 + column * WIDTH, 8 + row * HEIGHT);
    if inverse {
        let _ = writeln!(
            svg,
            "<rect x=\"{left}\" y=\"{top}\" width=\"{length}\" height=\"{HEIGHT}\" fill=\"#222\"/>"
        );
    }
    let text = text.trim_end();
    let left = left + (text.chars().count() - text.trim_start().chars().count()) * WIDTH;
    let text = text.trim_start();
    if text.is_empty() {
        return;
    }
    let length = text.chars().count() * WIDTH;
    let weight = if bold { " font-weight=\"bold\"" } else { "" };
    let colour = if inverse { "#fff" } else { "#222" };
    // The bars and dots may come from a font of another width, so each character has its own place.
    let places: Vec<_> =
        (0..text.chars().count()).map(|place| (left + place * WIDTH).to_string()).collect();
    let across = if text.is_ascii() {
        format!("x=\"{left}\" textLength=\"{length}\"")
    } else {
        format!("x=\"{}\"", places.join(" "))
    };
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let _ = writeln!(
        svg,
        "<text {across} y=\"{}\" xml:space=\"preserve\" \
         fill=\"{colour}\"{weight}>{text}</text>",
        top + 13
    );
}

#[test]
fn the_guide_s_pictures_are_what_a_terminal_shows() {
    let readings = minute(40);
    let detail = View {
        page: Page::Detail,
        selected: Some(readings[0].connections[3].id),
        ..View::default()
    };
    let cases = [
        ("top-80x24", View::default(), SMALL, "40 connections on a terminal of 80 columns"),
        ("top-200x60", View::default(), LARGE, "40 connections on a terminal of 200 columns"),
        ("top-detail", detail, SMALL, "the last minute of one connection"),
    ];
    for (name, view, size, title) in cases {
        let parser = terminal(&view, &[&readings], &live(), size);
        let drawn = picture(&parser, &format!("wakeai top: {title}"));
        let path =
            Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../../docs/guides/{name}.svg"));
        if std::env::var_os("WAKEAI_WRITE_PICTURES").is_some() {
            std::fs::write(&path, &drawn).unwrap();
        }
        let found = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            found == drawn,
            "{name}.svg differs: WAKEAI_WRITE_PICTURES=1 cargo test -p wakeai-top"
        );
    }
}
