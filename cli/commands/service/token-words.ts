/** Texts of the flags for a service's token and certificate. Verbs that need only these load nothing else of a service. */
export const defaultTokenVariable = "ALIDADE_SERVICE_TOKEN";

export const caWords = "PEM file of the certificate that an https address is trusted by (default: those that Node trusts)";
