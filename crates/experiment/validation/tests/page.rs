//! The page from stored results, and the origin of the figures in its prose.

#![allow(clippy::unwrap_used, reason = "a failed step is a failed test")]

use wakeai_validation::page::render;
use wakeai_validation::sections::{Results, TEMPLATES};

/// Results with a few rows of each table, as `page --json` keeps them.
fn stored() -> serde_json::Value {
    serde_json::from_str(include_str!("page/results.json")).unwrap()
}

fn page(results: serde_json::Value) -> String {
    render(&serde_json::from_value::<Results>(results).unwrap()).unwrap()
}

#[test]
fn the_page_is_made_from_stored_results() {
    insta::assert_snapshot!(page(stored()));
}

#[test]
fn results_are_read_back_as_they_were_written() {
    let results: Results = serde_json::from_value(stored()).unwrap();
    assert_eq!(serde_json::to_value(&results).unwrap(), stored());
}

#[test]
fn a_section_that_was_not_run_has_no_heading() {
    let mut results = stored();
    results["single"] = serde_json::Value::Null;
    let (whole, without) = (page(stored()), page(results));
    assert!(whole.contains("## One TCP connection") && !without.contains("## One TCP connection"));
}

#[test]
fn other_figures_make_other_sentences() {
    let mut results = stored();
    let row = &mut results["cases"]["rows"][0];
    (row["counts_hold"], row["sim"]["timeouts"]) = (false.into(), 123.4.into());
    let page = page(results).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(page.contains("of one connection, and here 123.4, up to"), "{page}");
}

/// Words that state a figure.
const NUMBERS: [&str; 16] = [
    "half",
    "third",
    "quarter",
    "fifth",
    "sixth",
    "eighth",
    "tenth",
    "twice",
    "double",
    "threefold",
    "dozen",
    "dozens",
    "hundred",
    "thousand",
    "percent",
    "tenfold",
];

/// The words before a number that is part of a name, such as "table 2".
const NAMED: [&str; 5] = ["table", "tables", "figure", "figures", "section"];

/// The prose of a template without headings, tables and code, and without the parts that come from
/// the results or are marked as the set-up's.
fn own_prose(template: &str) -> String {
    let mut text = template.to_owned();
    for (begin, end) in [
        ("{% filter setup %}", "{% endfilter %}"),
        ("{{", "}}"),
        ("{%", "%}"),
        ("```", "```"),
        ("`", "`"),
        ("](", ")"),
    ] {
        while let Some(from) = text.find(begin) {
            let after = from + begin.len();
            let to = text[after..].find(end).expect("it is closed") + after + end.len();
            text.replace_range(from..to, "_");
        }
    }
    let is_prose = |line: &&str| !line.starts_with(['#', '|', '!']);
    text.lines().filter(is_prose).collect::<Vec<_>>().join(" ")
}

/// The words of a text that state a number.
fn figures(prose: &str) -> Vec<&str> {
    let mut in_name = false;
    let words = prose.split_whitespace();
    let plain = words.map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()));
    let states_a_figure = |word: &&str| {
        let has_digit = word.contains(|c: char| c.is_ascii_digit());
        let is_name = word.starts_with("802.11") || word.starts_with("ns-3") || word.contains('/');
        let stated = (has_digit && !is_name && !in_name) || NUMBERS.contains(word);
        in_name = NAMED.contains(&word.to_lowercase().as_str())
            || *word == "RFC"
            || (in_name && (has_digit || ["and", "to"].contains(word)));
        stated
    };
    plain.filter(states_a_figure).collect()
}

#[test]
fn no_template_states_a_figure_of_its_own() {
    for (name, text) in TEMPLATES {
        let prose = own_prose(text);
        assert_eq!(figures(&prose), Vec::<&str>::new(), "{name}: {prose}");
    }
}

#[test]
fn a_figure_in_a_sentence_is_found_and_a_name_is_not() {
    for (said, found) in [
        ("Without it, 40 uploads have 169 timeouts.", vec!["40", "169"]),
        ("They get a third of their share.", vec!["third"]),
        ("It loses 1.6 % at the most.", vec!["1.6"]),
        ("As RFC 6298 says of 802.11g, see figures 4 and 5 and table 2.", vec![]),
        (
            "{% filter setup %}\n300 packets\n{% endfilter %}\nIt loses {{ a | fixed(1) }} %.",
            vec![],
        ),
        ("| 128 ms | 256 |", vec![]),
    ] {
        assert_eq!(figures(&own_prose(said)), found, "{said}");
    }
}
