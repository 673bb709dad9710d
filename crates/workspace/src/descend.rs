//! Listing whole subtrees, on as many threads as there are cores.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use rustix::fs::Mode;
use rustix::io::Errno;

use crate::lister::{LIST, Lister, Scene};
use crate::listing::Listing;
use crate::look::LookError;
use crate::root::{ancestors, join, split};
use crate::zones::Zone;

/// Directories nested deeper than this are not entered: nobody works there, and resolving such paths costs
/// quadratic time.
pub(crate) const MAX_DEPTH: usize = 1_000;

/// Directories nested deeper than this are opened by their whole path, so that open ones stay few.
pub(crate) const MAX_OPEN: usize = 32;

/// Entries after which a further thread pays for itself.
const ALONE: usize = 1_500;

/// How many threads look at a workspace.
pub(crate) fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get).min(8)
}

/// A subtree to list: its path and zone.
pub(crate) type Start = (Vec<u8>, Zone);

/// Places that are not in the listings.
#[derive(Debug, Default)]
pub(crate) struct Outside {
    /// Directories that carry a believed tag.
    pub(crate) tagged: BTreeSet<Vec<u8>>,
    /// Directories that could not be listed, with the reason.
    pub(crate) unreadable: BTreeMap<Vec<u8>, String>,
    /// Directories that were named and were gone when they were opened.
    pub(crate) vanished: u64,
}

impl Outside {
    fn append(&mut self, mut other: Self) {
        self.tagged.append(&mut other.tagged);
        self.unreadable.append(&mut other.unreadable);
        self.vanished += other.vanished;
    }

    /// Notes why a directory is not listed, or says that the system ran out of something.
    pub(crate) fn refused(&mut self, scene: &Scene<'_>, dir: Vec<u8>, error: Errno) -> Result<(), LookError> {
        match error {
            // Between being named and being opened it went away or became something else.
            Errno::NOENT | Errno::NOTDIR | Errno::LOOP if !dir.is_empty() => self.vanished += 1,
            Errno::MFILE | Errno::NFILE | Errno::NOMEM => {
                let path = scene.root.path().to_path_buf();
                return Err(LookError::System { path, source: error.into() });
            }
            error => {
                self.unreadable.insert(dir, std::io::Error::from(error).to_string());
            }
        }
        Ok(())
    }
}

/// Lists subtrees completely. The listings come start by start, in the order of the starts, each subtree's in the
/// order of [`crate::listing::by_parts`].
pub(crate) fn descend(
    scene: &Scene<'_>,
    starts: Vec<Start>,
    outside: &mut Outside,
) -> Result<Vec<Arc<Listing>>, LookError> {
    if starts.is_empty() {
        return Ok(Vec::new());
    }
    let count = u32::try_from(starts.len()).unwrap_or(u32::MAX);
    let pool = Pool::default();
    pool.take_slots(count);
    let mut first = Worker::new(scene, &pool);
    first.pending = (0..count)
        .zip(starts)
        .map(|(slot, (path, zone))| Task { path, zone, parent: None, slot })
        .rev()
        .collect();
    while first.work < ALONE || first.pending.len() < 2 {
        let Some(task) = first.pending.pop() else { break };
        first.take(task);
    }
    let mut workers = vec![first];
    if !workers[0].pending.is_empty() && !pool.over.load(Ordering::Relaxed) {
        workers.extend((1..threads()).map(|_| Worker::new(scene, &pool)));
        pool.lock().working = workers.len();
        std::thread::scope(|scope| {
            let (own, others) = workers.split_at_mut(1);
            for worker in others {
                // A system that has no thread left is looked at with fewer.
                if std::thread::Builder::new().spawn_scoped(scope, || worker.run()).is_err() {
                    pool.one_less();
                }
            }
            own[0].run();
        });
    }
    if let Some(error) = pool.failure.lock().unwrap_or_else(PoisonError::into_inner).take() {
        return Err(error);
    }
    for worker in workers {
        outside.append(worker.outside);
    }
    let mut slots = pool.slots.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut listings = Vec::with_capacity(slots.len());
    let mut pending: Vec<u32> = (0..count).rev().collect();
    while let Some(slot) = pending.pop() {
        if let Some(Done { listing, children, below }) = slots[slot as usize].take() {
            listings.push(listing);
            pending.extend((children..children + below).rev());
        }
    }
    Ok(listings)
}

struct Task {
    path: Vec<u8>,
    zone: Zone,
    /// The open directory above, where it is kept open.
    parent: Option<Arc<OwnedFd>>,
    slot: u32,
}

/// A listed directory; those below it have the slots from `children` on.
struct Done {
    listing: Arc<Listing>,
    children: u32,
    below: u32,
}

/// What threads share. Each works depth first on its own tasks and gives half of them away when another has none.
#[derive(Default)]
struct Pool {
    /// What was listed; each listing knows the slots of those below it.
    slots: Mutex<Vec<Option<Done>>>,
    shared: Mutex<Shared>,
    wake: Condvar,
    hungry: AtomicUsize,
    over: AtomicBool,
    failure: Mutex<Option<LookError>>,
}

#[derive(Default)]
struct Shared {
    tasks: Vec<Task>,
    working: usize,
}

impl Pool {
    /// So many new slots, one after the other; says the first.
    fn take_slots(&self, count: u32) -> u32 {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let first = slots.len();
        slots.resize_with(first + count as usize, || None);
        u32::try_from(first).unwrap_or(u32::MAX)
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for tasks; none when all are done.
    fn wait(&self) -> Vec<Task> {
        let mut shared = self.lock();
        shared.working -= 1;
        self.hungry.fetch_add(1, Ordering::Relaxed);
        while shared.tasks.is_empty() && shared.working > 0 && !self.over.load(Ordering::Relaxed) {
            shared = self.wake.wait(shared).unwrap_or_else(PoisonError::into_inner);
        }
        self.hungry.fetch_sub(1, Ordering::Relaxed);
        if self.over.load(Ordering::Relaxed) || shared.tasks.is_empty() {
            self.wake.notify_all();
            return Vec::new();
        }
        shared.working += 1;
        std::mem::take(&mut shared.tasks)
    }

    fn give(&self, tasks: impl Iterator<Item = Task>) {
        self.lock().tasks.extend(tasks);
        self.wake.notify_one();
    }

    fn fail(&self, error: LookError) {
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        // Under the lock, so that nobody goes to sleep between looking and being woken.
        let shared = self.lock();
        self.over.store(true, Ordering::Relaxed);
        self.wake.notify_all();
        drop(shared);
    }

    /// A thread that could not be started does no work.
    fn one_less(&self) {
        self.lock().working -= 1;
        self.wake.notify_all();
    }
}

struct Worker<'a> {
    scene: &'a Scene<'a>,
    pool: &'a Pool,
    lister: Lister,
    pending: Vec<Task>,
    outside: Outside,
    /// Directories and entries seen so far.
    work: usize,
}

impl<'a> Worker<'a> {
    fn new(scene: &'a Scene<'a>, pool: &'a Pool) -> Self {
        Self { scene, pool, lister: Lister::new(), pending: Vec::new(), outside: Outside::default(), work: 0 }
    }

    fn run(&mut self) {
        while !self.pool.over.load(Ordering::Relaxed) {
            let Some(task) = self.pending.pop() else {
                self.pending = self.pool.wait();
                if self.pending.is_empty() {
                    return;
                }
                continue;
            };
            self.take(task);
            if self.pending.len() > 1 && self.pool.hungry.load(Ordering::Relaxed) > 0 {
                // The oldest tasks are nearest to the top and so the largest.
                self.pool.give(self.pending.drain(..self.pending.len() / 2));
            }
        }
    }

    fn take(&mut self, task: Task) {
        if let Err(error) = self.list(task) {
            self.pending.clear();
            self.pool.fail(error);
        }
    }

    fn list(&mut self, task: Task) -> Result<(), LookError> {
        let Task { path, zone, parent, slot } = task;
        let depth = ancestors(&path).count();
        if depth >= MAX_DEPTH {
            self.outside.unreadable.insert(path, format!("nested deeper than {MAX_DEPTH} directories"));
            return Ok(());
        }
        let opened = match &parent {
            Some(parent) => rustix::fs::openat(parent, split(&path).1, LIST, Mode::empty()),
            None => self.scene.root.open_dir(&path),
        };
        let listed = opened.and_then(|fd| Ok((self.lister.list(self.scene, fd.as_fd(), &path, zone)?, fd)));
        let (listing, fd) = match listed {
            Ok((Some(listing), fd)) => (listing, fd),
            Ok((None, _)) => {
                self.outside.tagged.insert(path);
                return Ok(());
            }
            Err(error) => return self.outside.refused(self.scene, path, error),
        };
        let want = self.scene.want;
        let below = listing.dirs().filter(|(_, zone)| want.enters(*zone)).count();
        let below = u32::try_from(below).unwrap_or(u32::MAX);
        let children = self.pool.take_slots(below);
        if below > 0 {
            let parent = (depth < MAX_OPEN).then(|| Arc::new(fd));
            let entered = listing.dirs().filter(|(_, zone)| want.enters(*zone));
            let first = self.pending.len();
            self.pending.extend((children..).zip(entered).map(|(slot, (name, zone))| Task {
                path: join(&path, name),
                zone,
                parent: parent.clone(),
                slot,
            }));
            self.pending[first..].reverse();
        }
        self.work += 1 + listing.len();
        let done = Done { listing: Arc::new(listing), children, below };
        let mut slots = self.pool.slots.lock().unwrap_or_else(PoisonError::into_inner);
        slots[slot as usize] = Some(done);
        Ok(())
    }
}
