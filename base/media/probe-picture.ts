/** A picture of ours, for asking a template where it puts one: 56×56 pixels of one grey, which every vision model takes. */
export const probePicture =
  "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAADgAAAA4CAAAAACN7WTCAAAAJElEQVR42u3LMQ0AAAwDoEqv9FpYdsNP+hRRFEVRFEVRFMWbAclXIFtsqkldAAAAAElFTkSuQmCC";
