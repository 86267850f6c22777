//! `reqwest-lease`: sets up, shows, changes and repairs pools of leased proxy endpoints in Redis.

mod acl;
mod arguments;
mod audit;
mod bench;
mod context;
mod diagnosis;
mod doctor;
mod drain;
mod exit;
mod failure;
mod fetch;
mod import;
mod init;
mod inventory;
mod list;
mod members;
mod orders;
mod output;
mod probe;
mod reap;
mod selection;
mod shell;
mod status;
mod sync;
mod time;

use std::process::ExitCode;

use clap::Parser as _;

use arguments::{Arguments, Command, InventoryCommand};
use context::Context;
use exit::Code;
use failure::Failure;

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return failure::of_arguments(&error),
    };
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => return Failure::new(Code::FAILED, format!("no runtime: {error}")).tell(),
    };
    match runtime.block_on(run(arguments)) {
        Ok(code) => code.into(),
        Err(failure) => failure.tell(),
    }
}

async fn run(arguments: Arguments) -> Result<Code, Failure> {
    let context = Context::new(arguments.common);
    match arguments.command {
        Command::Init(init) => init.run(&context).await,
        Command::Sync(sync) => sync.run(&context).await,
        Command::Add(add) => add.run(&context).await,
        Command::Remove(remove) => remove.run(&context).await,
        Command::Disable(disable) => disable.run(&context).await,
        Command::Enable(enable) => enable.run(&context).await,
        Command::Quarantine(quarantine) => quarantine.run(&context).await,
        Command::Drain(drain) => drain.run(&context).await,
        Command::Pause => orders::pause(&context).await,
        Command::Resume(resume) => resume.run(&context).await,
        Command::List(list) => list.run(&context).await,
        Command::Status(status) => status.run(&context).await,
        Command::Audit(audit) => audit.run(&context).await,
        Command::Reap => reap::run(&context).await,
        Command::Probe(probe) => probe.run(&context).await,
        Command::Doctor(doctor) => doctor.run(&context).await,
        Command::Acl(acl) => acl.run(&context),
        Command::Bench(bench) => bench.run(&context).await,
        Command::Inventory(InventoryCommand::Check(check)) => check.run(&context).await,
        Command::Inventory(InventoryCommand::Import(import)) => import.run(&context),
        Command::Fetch(fetch) => fetch.run(&context).await,
        Command::Destroy => orders::destroy(&context).await,
        Command::Completions { shell } => shell::completions(shell),
        Command::Man { directory } => shell::manual(directory),
    }
}
