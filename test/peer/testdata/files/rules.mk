nothing: rules.mk
fails:
	@echo no >&2; exit 3
.PHONY: phony
phony:
	@echo making $(A)
