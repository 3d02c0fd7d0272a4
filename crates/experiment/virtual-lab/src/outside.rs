//! The runs of a command, each in a guest.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use wakeai_guest::{Archive, Guest, Kernel, LAB, Machine, Patience, RADIOS, Store};
use wakeai_lab::Lapse;
use wakeai_results::records::RecordsError;
use wakeai_results::result::{GuestMachine, Report};
use wakeai_scenario::{FlowKind, ResolvedCondition, Scenario};
use wakeai_units::Duration;
use wakeai_world::{
    Asked, Made, Options, Outcome, Progress, Recorder, RunError, RunSink, Task, World, session,
};

use crate::error::VirtualLabError;
use crate::inside::{COMMAND, PROGRAM};
use crate::task::{self, Order};
use crate::wire::{End, Message};
use crate::{image, rows};

/// The guest's clock, as a result names it.
const CLOCK: &str = "1 ns per instruction";
/// The memory of every guest in MB (2^20 bytes), and what each station adds, without an agent and with one.
const MEMORY_MB: u32 = 1024;
const STATION_MB: u32 = 8;
const AGENT_MB: u32 = 24;
/// The most host seconds that a second of a guest takes on an idle core, and those of its start and end. The estimate
/// that is said before a long command uses them.
const HOST_SECONDS: f64 = 3.0;
const BOOT_SECONDS: f64 = 10.0;
/// A command is long where it may take more than this, seconds.
const LONG: f64 = 60.0;

/// How a scenario is run in guests.
#[derive(Clone, Debug)]
pub struct VirtualLabOptions {
    /// The runs to make, and the directory for the records (Parquet) and the agents' logs.
    pub run: Options,
    /// The number of guests at a time.
    pub jobs: usize,
    /// The kernel: a version, `latest`, or the path of an image.
    pub kernel: String,
    /// The directory of an image's modules, where it is not beside the image.
    pub modules: Option<PathBuf>,
    /// The memory of each guest in MB (2^20 bytes); `None` lets the number of stations decide.
    pub memory_mb: Option<u32>,
    /// The bounds of a faithful run on the 99th percentile and the largest value of the lateness, and on the 99th
    /// percentile of the time for which ordinary processes waited for the guest's processor.
    pub bounds: [Duration; 3],
    /// The `wakeai` program.
    pub wakeai: PathBuf,
}

/// Runs `scenario` and returns its report. Nothing of this machine is changed but the cache of kernels.
///
/// # Errors
///
/// [`VirtualLabError`]; [`VirtualLabError::exit_status`] is the exit status of the command. A run that was not
/// faithful is an error that contains the report.
pub fn run(
    options: &VirtualLabOptions,
    scenario: &Scenario,
    progress: &dyn Progress,
) -> Result<Report, VirtualLabError> {
    let asked = Asked::new(scenario, &options.run)?;
    wakeai_lab::check(&asked, progress)?;
    let lab = VirtualLab::prepare(options, &asked, progress)?;
    let recorder = asked.recorder(&options.run, VirtualLab::NAME).map_err(RunError::from)?;
    let agents = recorder.as_ref().map(Recorder::agents).transpose().map_err(RunError::from)?;
    let lab = VirtualLab { agents, ..lab };
    lab.announce(&asked);
    let report = session::report(options.jobs, &lab, &asked, recorder);
    lab.say_factor();
    lab.judged(report?)
}

/// Makes the solo run with this key ([`wakeai_scenario::SoloRun::key`]) that the runs of `scenario` need, and returns the goodput of
/// its flow in Mbit/s and the guest.
///
/// # Errors
///
/// [`VirtualLabError`].
pub fn alone(
    options: &VirtualLabOptions,
    scenario: &Scenario,
    key: &str,
    progress: &dyn Progress,
) -> Result<(f64, GuestMachine), VirtualLabError> {
    let asked = Asked::new(scenario, &options.run)?;
    let solos = asked.solos();
    let (key, condition) = solos.iter().find(|(known, _)| known.run == key).ok_or_else(|| {
        VirtualLabError::Answer("the scenario needs no solo run of that key".to_owned())
    })?;
    let lab = VirtualLab::prepare(options, &asked, progress)?;
    let (condition, seed) = (condition.clone(), key.seed);
    let mbps = session::alone(&lab, &condition, seed)?;
    Ok((mbps, lab.about))
}

/// The guests of one command.
struct VirtualLab<'a> {
    options: &'a VirtualLabOptions,
    progress: &'a dyn Progress,
    scenario: &'a Scenario,
    kernel: Kernel,
    machine: Machine,
    /// The file system of every guest.
    image: Archive,
    about: GuestMachine,
    /// The directory of the agents' files, if the command keeps records.
    agents: Option<PathBuf>,
    /// The first run that was not faithful, and the bound that it exceeded.
    first: Mutex<Option<(String, Lapse)>>,
    /// The time that all guests have taken: on this machine's clock, of its processors, and on their clocks, seconds.
    took: Mutex<[f64; 3]>,
}

impl World for VirtualLab<'_> {
    const NAME: &'static str = "lab";
    type Error = VirtualLabError;

    fn after(error: VirtualLabError, made: Made) -> VirtualLabError {
        VirtualLabError::After { error: Box::new(error), made: Box::new(made) }
    }

    fn guest(&self) -> Option<GuestMachine> {
        Some(self.about.clone())
    }

    fn progress(&self) -> &dyn Progress {
        self.progress
    }

    fn run(&self, task: Task<'_>) -> Result<Outcome, VirtualLabError> {
        let began = Instant::now();
        let mut archive = Archive::default();
        let order = self.order(&task)?;
        let order = serde_json::to_vec(&order).expect("strings and numbers");
        archive.file(task::PATH, order);
        let machine = Machine { seed: Some(task.seed), ..self.machine.clone() };
        let mut guest = machine.boot(&[&self.image, &archive])?;
        let End { uptime_ns, run } = self.followed(&mut guest, &task)?;
        let processor = guest.processor_time().as_secs_f64();
        drop(guest);
        let all = [began.elapsed().as_secs_f64(), processor, uptime_ns as f64 / 1e9];
        for (took, more) in
            self.took.lock().unwrap_or_else(PoisonError::into_inner).iter_mut().zip(all)
        {
            *took += more;
        }
        let measured = run.map_err(|failed| VirtualLabError::Inside {
            message: failed.message,
            status: failed.status,
        })?;
        if let Some(lapse) = measured.lapse(self.options.bounds) {
            let mut first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
            first.get_or_insert_with(|| (task.name.clone(), lapse));
        }
        let expanded = task.condition.experiment.expand(task.seed);
        measured.outcome(expanded).map_err(VirtualLabError::Answer)
    }
}

impl<'a> VirtualLab<'a> {
    /// Finds the kernel, and packs the file system.
    fn prepare(
        options: &'a VirtualLabOptions,
        asked: &Asked<'a>,
        progress: &'a dyn Progress,
    ) -> Result<Self, VirtualLabError> {
        Self::prepared(options, asked, progress).map_err(|error| {
            // Ctrl-C also ends the programs that fetch a kernel.
            if progress.is_interrupted() { RunError::Interrupted.into() } else { error }
        })
    }

    fn prepared(
        options: &'a VirtualLabOptions,
        asked: &Asked<'a>,
        progress: &'a dyn Progress,
    ) -> Result<Self, VirtualLabError> {
        let store = Store::of_user()?;
        // What is missing is named before a kernel is fetched.
        let machine = Machine::x86_64("")?;
        let kernel = store.kernel(&options.kernel, options.modules.as_deref(), &|said| {
            progress.note(said);
        })?;
        let mut conditions = asked.conditions.iter();
        let has_radios = conditions.any(|one| one.experiment.stack.is_linux());
        let (image, image_digest) = image::build(&kernel, &options.wakeai, has_radios)?;
        let memory_mb = options.memory_mb.unwrap_or_else(|| memory_mb(&asked.conditions));
        let about = GuestMachine {
            kernel: kernel.release.to_string(),
            kernel_digest: kernel.digest()?,
            image_digest,
            emulator: format!("qemu {}", machine.version()?),
            clock: CLOCK.to_owned(),
            memory_mb,
        };
        let machine = Machine {
            memory_mb,
            kernel: kernel.image.clone(),
            parameters: format!("PATH=/usr/bin:/bin rdinit={PROGRAM} -- {COMMAND}"),
            answers: true,
            ..machine
        };
        Ok(Self {
            options,
            progress,
            scenario: asked.scenario,
            kernel,
            machine,
            image,
            about,
            agents: None,
            first: Mutex::default(),
            took: Mutex::default(),
        })
    }

    /// The task of a guest.
    fn order(&self, task: &Task<'_>) -> Result<Order, VirtualLabError> {
        let (condition, solo) = task::place(self.scenario, task).ok_or_else(|| {
            VirtualLabError::Answer(format!("the scenario has no run `{}`", task.name))
        })?;
        let flows = task.condition.experiment.flows.iter();
        let algorithms: BTreeSet<String> = flows
            .filter(|flow| flow.kind == FlowKind::Tcp)
            .filter_map(|flow| flow.algorithm.as_deref().map(|name| format!("tcp_{name}")))
            .collect();
        let experiment = &task.condition.experiment;
        let radios = if experiment.stack.is_linux() { RADIOS } else { &[] };
        let modules = LAB.iter().chain(radios).copied();
        let modules = modules.chain(algorithms.iter().map(String::as_str));
        let mut modules = self.kernel.modules.with_needs(modules);
        if let Some(driver) = modules.iter_mut().find(|module| *module == RADIOS[0]) {
            // One for the access point.
            *driver = format!("{driver} radios={}", experiment.expand_stations().len() + 1);
        }
        Ok(Order {
            scenario: self.scenario.to_toml(),
            condition,
            solo,
            name: task.name.clone(),
            seed: task.seed,
            facts: task.facts.iter().map(task::rates).collect(),
            records: task.sink.is_some(),
            bounds: self.options.bounds.map(Duration::as_nanos),
            modules,
        })
    }

    /// Takes what the guest sends until its end.
    fn followed(&self, guest: &mut Guest, task: &Task<'_>) -> Result<End, VirtualLabError> {
        let mut end = None;
        guest.follow::<VirtualLabError>(Patience::default(), |bytes| {
            if self.progress.is_interrupted() {
                return Err(RunError::Interrupted.into());
            }
            let mut taken = 0;
            let read = |at| Message::read(at).map_err(VirtualLabError::Answer);
            while let Some((message, length)) = read(&bytes[taken..])? {
                taken += length;
                match message {
                    Message::Reached(elapsed) => self.progress.reached(task.number, elapsed),
                    Message::Note(text) => self.progress.note(&text),
                    Message::Rows(rows) => keep_rows(&rows, task.sink.as_ref())?,
                    Message::File(name, contents) => self.keep_file(task, &name, &contents)?,
                    Message::End(last) => end = Some(last),
                }
            }
            Ok(taken)
        })?;
        end.map_or_else(|| Err(guest.failure().into()), |end| Ok(*end))
    }

    /// Keeps a file of the agents beside the records.
    fn keep_file(
        &self,
        task: &Task<'_>,
        name: &str,
        contents: &[u8],
    ) -> Result<(), VirtualLabError> {
        let (Some(kept), Some((_, repeat))) = (&self.agents, task.place) else { return Ok(()) };
        let directory = kept.join(format!("{}-{repeat}", task.condition.name()));
        let name = Path::new(name).file_name().unwrap_or_default();
        let path = directory.join(name);
        let written = fs::create_dir_all(&directory).and_then(|()| fs::write(&path, contents));
        written.map_err(|error| {
            RunError::from(RecordsError::Write { path, reason: error.to_string() }).into()
        })
    }

    /// Says what a long command needs of this machine.
    fn announce(&self, asked: &Asked<'_>) {
        let solos = asked.solos();
        let all = solos.values().map(|solo| solo.experiment.duration);
        let repeats = asked.repeat as usize;
        let of_conditions =
            asked.conditions.iter().flat_map(|one| vec![one.experiment.duration; repeats]);
        let lengths: Vec<f64> = all.chain(of_conditions).map(Duration::as_secs_f64).collect();
        let seconds: f64 = lengths.iter().map(|length| BOOT_SECONDS + length * HOST_SECONDS).sum();
        let jobs = self.options.jobs.min(lengths.len()).max(1);
        if seconds > LONG {
            self.progress.note(&format!(
                "{} guests of {} MB, {jobs} at a time, may take {:.0} min on idle processors",
                lengths.len(),
                self.about.memory_mb,
                (seconds / jobs as f64 / 60.0).ceil()
            ));
        }
    }

    /// Says how much longer the guests took than their clocks say.
    fn say_factor(&self) {
        let [here, processor, there] = *self.took.lock().unwrap_or_else(PoisonError::into_inner);
        if there > 0.0 {
            self.progress.note(&format!(
                "{here:.0} s here, and {processor:.0} s of a processor, for {there:.0} s on the guests' clocks: a factor of \
                 {:.1}, of the processor {:.1}",
                here / there,
                processor / there
            ));
        }
    }

    /// Returns the report, or an error with the report if a run was not faithful.
    fn judged(self, report: Report) -> Result<Report, VirtualLabError> {
        match self.first.into_inner().unwrap_or_else(PoisonError::into_inner) {
            None => Ok(report),
            Some((run, lapse)) => {
                Err(VirtualLabError::Unfaithful { run, lapse, report: Box::new(report) })
            }
        }
    }
}

fn keep_rows(bytes: &[u8], sink: Option<&RunSink>) -> Result<(), VirtualLabError> {
    let unreadable = |_| VirtualLabError::Answer("its records are no rows".to_owned());
    for row in rows::read(bytes).map_err(unreadable)? {
        if let Some(sink) = sink {
            sink.row(row);
        }
    }
    Ok(())
}

/// The memory that the guests of these conditions get: as much as the one with the most stations needs.
fn memory_mb(conditions: &[ResolvedCondition]) -> u32 {
    let needs = conditions.iter().map(|condition| {
        let agents = condition.agents();
        let with = agents.iter().filter(|runs| **runs).count() as u32;
        MEMORY_MB + with * AGENT_MB + (agents.len() as u32 - with) * STATION_MB
    });
    needs.max().unwrap_or(MEMORY_MB)
}
