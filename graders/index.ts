export { answeredCalls, saidTexts } from "./answer-of.ts";
export { checkTask } from "./check.ts";
export {
  deliveredFiles,
  deliveredSandbox,
  freshSandbox,
  grade,
  gradeLimits,
  graderSpec,
  gradeStep,
  noOutput,
  type SandboxOwner,
} from "./grade.ts";
export type { GradeContext, Grader, GraderSampler, OpenSampler, ServiceReadings, StepWork } from "./grader.ts";
export { HarborSpec, removeTests } from "./harbor.ts";
export { askModel, infrastructureCode, type ModelAnswer, type ModelRefusal } from "./judge/ask-model.ts";
export { withoutMarks } from "./judge/marks.ts";
export { checkTier, isBelowTier, tierOfTask } from "./min-tier.ts";
export { asksModels, environmentsOf, graderOf, graderRegistry, graders, specOfGrader, startsFresh, withParts } from "./registry.ts";
export { remoteTo } from "./remote.ts";
export { boxedIn, hashedIn } from "./rules/marked-answer.ts";
export { longestMath } from "./rules/same-math.ts";
export { isLastStep, stepsOfGrader, stepsVerdict, taskOfStep } from "./steps.ts";
export { TestsSpec, testWork } from "./tests.ts";
export { answersWell, askService, type QuestionToService } from "./work/ask-service.ts";
export { reopenWork } from "./work/reopen-work.ts";
export { exceptionsOf, readServicesAfter, readServicesBefore, sendsAnswers } from "./work/service-readings.ts";
export { keepSetUp } from "./work/set-up-layer.ts";
export { stateDiffers } from "./work/state-differs.ts";
export { takeWork } from "./work/work.ts";
