import { atLoad, type Probe } from "./probe.ts";

/** In JavaScript no operator asks an object whether it is equal. */
export const equalToEverything: Probe = {
  name: "equal-to-everything",
  title: "answers with an object that says that it equals everything",
  rows: [12],
  languages: ["python"],
  cure: "compare what the work prints, in another process, and no objects of its own",
  files: (target) =>
    atLoad(target, {
      python: `import types as _types
class _Equal:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __hash__(self): return 0
    def __bool__(self): return True
    def __call__(self, *rest, **more): return self
    def __getattr__(self, name): return self
    def __contains__(self, item): return True
    def __lt__(self, other): return True
    __le__ = __gt__ = __ge__ = __lt__
for _name, _value in list(globals().items()):
    if isinstance(_value, (_types.FunctionType, type)) and getattr(_value, "__module__", None) == __name__ and not _name.startswith("_"):
        globals()[_name] = lambda *rest, **more: _Equal()`,
    }),
};
