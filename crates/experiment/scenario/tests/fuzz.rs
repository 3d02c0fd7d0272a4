//! Checks that no content of a scenario file crashes the reader.

mod mutate;

/// The number of mutated files that a test run reads. CI reads a million with the example
/// `fuzz_scenarios`.
const FILES: u64 = 20_000;

#[test]
fn mutated_files_never_break_the_reader() {
    let seeds = mutate::seeds();
    assert!(seeds.iter().all(|seed| mutate::exercise(seed)), "the files to mutate are accepted");
    let mut accepted = 0;
    for number in 0..FILES {
        let text = mutate::mutated(&seeds, number);
        let read = std::panic::catch_unwind(|| mutate::exercise(&text));
        accepted += u64::from(read.unwrap_or_else(|_| panic!("file {number}:\n{text}")));
    }
    // Enough files were accepted and enough were refused.
    assert!((FILES / 50..FILES / 2).contains(&accepted), "{accepted} accepted");
}

#[test]
fn files_as_large_as_are_read_take_time_in_proportion() {
    // Each file would take minutes if the time grew with the square of its length.
    let megabyte = |text: &str| text.repeat((1 << 20) / text.len() - 1);
    let header = "name = \"x\"\nduration = \"9s\"\naccess_point = { standard = \"802.11g\" }\n";
    let flow = "[[flows]]\nfrom = \"a\"\nto = \"server\"\n";
    let station = "[[stations]]\nname = \"a\"\n";
    let groups: Vec<String> =
        (0..10_000).map(|number| format!("[[stations]]\nname = \"a{number}x\"\n")).collect();
    let sets: Vec<String> =
        (0..5_000).map(|number| format!("\"stations.a{number}x.queue\" = 7\n")).collect();
    let unknown: Vec<String> = (0..50_000).map(|number| format!("key{number} = 1\n")).collect();
    let texts = [
        megabyte("["),
        megabyte("[[a]]\n"),
        megabyte("a.b.c.d.e."),
        format!("x = {}", megabyte("[")),
        format!("x = {}", megabyte("{a=")),
        format!("x = {}", megabyte("1,")),
        format!("name = \"{}\"", megabyte("x")),
        format!("{header}{station}{}", megabyte(flow)),
        format!("{header}{flow}{}", megabyte(station)),
        format!("{header}{}{}", groups.concat(), flow.replace("\"a\"", "\"a77x\"")),
        format!(
            "{header}{}{}[[conditions]]\nname = \"a\"\n[conditions.set]\n{}",
            groups.concat(),
            flow.replace("\"a\"", "\"a77x\""),
            sets.concat()
        ),
        unknown.concat(),
    ];
    for text in texts {
        mutate::exercise(&text[..text.len().min(1 << 20)]);
    }
}
